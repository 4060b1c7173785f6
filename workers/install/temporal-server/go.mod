// The path lets it import the CLI's internal packages; the last part is the program's name.
module github.com/temporalio/cli/server/temporal

go 1.26.8

require github.com/temporalio/cli v1.9.1

// The CLI replaces it with a folder of its own, which Go ignores in a dependency. The server does not need it.
replace github.com/temporalio/cli/cliext => ./cliext
