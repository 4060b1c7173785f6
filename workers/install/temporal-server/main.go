// The server of Temporal's CLI without its other commands, with the flags that Temper passes to `temporal server start-dev`.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata"

	"github.com/google/uuid"
	"github.com/temporalio/cli/internal/devserver"
	"github.com/temporalio/ui-server/v2/server/version"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/headers"
	_ "modernc.org/sqlite"
)

// pairs collects each `--flag NAME=VALUE`.
type pairs map[string]string

func (p pairs) String() string { return "" }

func (p pairs) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%q must be NAME=VALUE", text)
	}
	p[name] = value
	return nil
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Printf("temporal server (Server %s, UI %s)\n", headers.ServerVersion, version.UIVersion)
		return
	}
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) < 2 || args[0] != "server" || args[1] != "start-dev" {
		return fmt.Errorf("this program knows `server start-dev` and `--version` only")
	}
	options, err := parse(args[2:])
	if err != nil {
		return err
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	server, err := devserver.Start(options)
	if err != nil {
		return err
	}
	defer server.Stop()
	<-stopped
	server.SuppressWarnings()
	return nil
}

func parse(args []string) (devserver.StartOptions, error) {
	options := devserver.StartOptions{
		Namespaces:             []string{"default"},
		ClusterID:              uuid.NewString(),
		MasterClusterName:      "active",
		CurrentClusterName:     "active",
		InitialFailoverVersion: 1,
		SearchAttributes:       map[string]enums.IndexedValueType{},
		// As the CLI sets them: what is created is seen at once.
		DynamicConfigValues: map[string]any{
			"system.forceSearchAttributesCacheRefreshOnRead": true,
			"system.forceNexusEndpointRefreshOnRead":         true,
			"frontend.persistenceMaxQPS":                     10000,
			"history.persistenceMaxQPS":                      45000,
		},
	}
	flags := flag.NewFlagSet("temporal server start-dev", flag.ContinueOnError)
	flags.StringVar(&options.DatabaseFile, "db-filename", "", "")
	flags.StringVar(&options.FrontendIP, "ip", "127.0.0.1", "")
	flags.IntVar(&options.FrontendPort, "port", 7233, "")
	flags.StringVar(&options.UIIP, "ui-ip", "127.0.0.1", "")
	flags.IntVar(&options.UIPort, "ui-port", 8233, "")
	headless := flags.Bool("headless", false, "")
	level := flags.String("log-level", "warn", "")
	flags.String("log-format", "json", "")
	// It has no configuration of its own that these would leave out.
	flags.Bool("disable-config-env", true, "")
	flags.Bool("disable-config-file", true, "")
	config, attributes := pairs{}, pairs{}
	flags.Var(config, "dynamic-config-value", "")
	flags.Var(attributes, "search-attribute", "")
	if err := flags.Parse(args); err != nil {
		return options, err
	}
	if *headless {
		options.UIIP = ""
	}
	if *level == "never" {
		options.LogLevel = 100
	} else if err := options.LogLevel.UnmarshalText([]byte(*level)); err != nil {
		return options, err
	}
	options.Logger = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: options.LogLevel}))
	for name, text := range attributes {
		options.SearchAttributes[name] = enums.IndexedValueType(enums.IndexedValueType_shorthandValue[text])
	}
	for name, text := range config {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return options, fmt.Errorf("%s=%s: %w", name, text, err)
		}
		// The server takes whole numbers as int alone.
		if number, isNumber := value.(float64); isNumber && number == float64(int(number)) {
			value = int(number)
		}
		options.DynamicConfigValues[name] = value
	}
	return options, nil
}
