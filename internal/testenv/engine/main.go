// Command engine downloads a version of OpenTofu, verified by tenv, for tests and the
// demo. Usage: engine VERSION FOLDER
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tofuutils/tenv/v4/config"
	"github.com/tofuutils/tenv/v4/pkg/loghelper"
	tofuretriever "github.com/tofuutils/tenv/v4/versionmanager/retriever/tofu"
)

// patience bounds a download: where none is reachable, it is known soon.
const patience = 3 * time.Minute

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: engine VERSION FOLDER")
		os.Exit(2)
	}
	if err := download(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "download:", err)
		os.Exit(1)
	}
}

func download(version, folder string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conf, err := config.DefaultConfig()
	if err != nil {
		return err
	}
	conf.Displayer = loghelper.InertDisplayer
	return tofuretriever.Make(&conf).Install(ctx, version, folder)
}
