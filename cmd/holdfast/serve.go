package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newServeCommand(a *app) *cobra.Command {
	var path string
	var onlyCheck bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Watch repositories, plan pull requests, apply merges",
		Args:  cli.Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := config.Load(path)
			if err != nil {
				return serve.ConfigError(path, err)
			}
			if onlyCheck {
				if err := serve.Check(c.Context(), cfg, a.Now()); err != nil {
					return serve.ConfigError(path, err)
				}
				fmt.Fprintf(a.Out, "%s is valid: %s\n", path, table.Count(len(cfg.Repositories), "repository"))
				serve.DescribeForges(a.Out, cfg)
				serve.DescribeIssuer(a.Out, cfg)
				return nil
			}
			return serve.Run(c.Context(), cfg, serve.Options{Version: buildVersion(), Log: a.Err, Now: a.Now, Hurry: onSecondSignal})
		},
	}
	c.Flags().StringVarP(&path, "config", "c", "holdfast.yaml", "configuration file")
	c.Flags().BoolVar(&onlyCheck, "check", false, "only check the configuration")
	return c
}
