module github.com/temporalio/cli/cliext
