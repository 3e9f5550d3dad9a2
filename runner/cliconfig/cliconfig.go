package cliconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// Options say where the configuration is looked for.
type Options struct {
	File   string   // where it is; empty: in Home
	Home   string   // the agent's home folder, which engines do not see; empty: there is none
	Seen   []string // absolute paths that engines see besides what every engine needs
	Logger *slog.Logger
}

// Config is the engines' own configuration, and what it names.
type Config struct {
	File    string   // where it is; empty: there is none
	Data    []byte   // as engines get it; nil: as it is in File
	Mirrors []string // folders that it takes providers from
	helpers []string // programs that it asks for credentials
}

// Where an operator says what engines see: in holdfast.yaml, or, of an agent that serve has
// not started, with flags.
const (
	inFile  = "engines.cliConfigFile (or --cli-config)"
	inPaths = "sandbox.paths in holdfast.yaml (or --sandbox-read)"
)

// hintHome says what to do about what is only in somebody's home folder.
const hintHome = "engines do not see that folder: name the file in " + inFile + ", or add its path to " + inPaths

// helperPrefix begins the names of credentials helpers.
const helperPrefix = "terraform-credentials-"

// devOverrides are not HCL as we read it: their names are quoted.
var devOverrides = regexp.MustCompile(`(?m)^\s*dev_overrides\b`)

// Read reads the configuration for engines in sandboxes. What they would not find
// there, or must not have, is an error.
func Read(opts Options) (Config, error) {
	c, home := Config{File: opts.File}, opts.Home
	if c.File == "" && home != "" {
		var err error
		if c.File, err = inHome(opts); err != nil {
			return c, err
		}
	}
	own, err := c.read(home, opts.Logger)
	if err != nil {
		return c, fmt.Errorf("engine configuration %s: %w", c.File, err)
	}
	if home == "" {
		return c, nil
	}
	if dir := providersIn(home); dir != "" && !own {
		return c, fmt.Errorf("providers are only in %s: engines do not look there, also if sandbox.paths has it: name the folder "+
			"as a filesystem_mirror in "+inFile, dir)
	}
	if opts.File != "" {
		return c, nil // an engine that is given a file reads no other
	}
	if more := moreIn(home); more != "" {
		return c, fmt.Errorf("the engines' configuration is also in %s, such as registry credentials: engines do not look there, "+
			"also if sandbox.paths has it: put it into a file, and name that in "+inFile, more)
	}
	return c, nil
}

// inHome returns the configuration file of the home folder, empty if there is none.
// Terraform reads one name, and OpenTofu prefers another: with two files it is not
// said which of them both engines are to have.
func inHome(opts Options) (string, error) {
	terraform := filepath.Join(opts.Home, "."+modulecode.Terraform+"rc")
	path := filepath.Join(opts.Home, "."+modulecode.Tofu+"rc")
	first, errFirst := os.Stat(terraform)
	second, errSecond := os.Stat(path)
	switch {
	case errFirst != nil && errSecond != nil:
		return "", nil
	case errFirst == nil && errSecond == nil && !os.SameFile(first, second):
		return "", fmt.Errorf("the engines' configuration is in %s and in %s: name the one for both engines in "+inFile, terraform, path)
	case errFirst == nil:
		path = terraform
	}
	if !folders.Within(opts.Seen, path) {
		return "", fmt.Errorf("the engines' configuration is only in %s: %s", path, hintHome)
	}
	return path, nil
}

// providersIn returns the folder of a home folder in which engines look for providers
// without any settings, empty if there are none. Credentials helpers lie there as well.
func providersIn(home string) string {
	for _, dir := range []string{filepath.Join(home, ".terraform.d", "plugins"), filepath.Join(home, ".local", "share", "terraform", "plugins")} {
		entries, err := os.ReadDir(dir)
		if err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), helperPrefix) }) {
			return dir
		}
	}
	return ""
}

// moreIn returns a file of a home folder that engines read besides the configuration
// file, empty if there is none: that of terraform login is one.
func moreIn(home string) string {
	for _, pattern := range []string{"*.tfrc", "*.tfrc.json"} {
		if files, err := filepath.Glob(filepath.Join(home, ".terraform.d", pattern)); err == nil && len(files) > 0 {
			return files[0]
		}
	}
	return ""
}

// read reads the file. own reports whether it says where providers come from.
func (c *Config) read(home string, logger *slog.Logger) (own bool, err error) {
	if c.File == "" {
		return false, nil
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return false, err
	}
	if _, _, err := boundedhcl.ParseFile(data, c.File); err != nil {
		return false, err
	}
	if devOverrides.Match(data) {
		return false, errors.New("dev_overrides lets anyone who can write there run code in every plan: it needs isolation: none (or --isolation none)")
	}
	file, diags := hclwrite.ParseConfig(data, c.File, hcl.InitialPos)
	if diags.HasErrors() {
		return false, fmt.Errorf("it cannot be read, and so not be used in a sandbox: %w", diags)
	}
	if file.Body().GetAttribute("plugin_cache_dir") != nil {
		file.Body().RemoveAttribute("plugin_cache_dir")
		logger.Warn("plugin_cache_dir is ignored: providers are prepared once for all runs")
	}
	c.Data = file.Bytes()
	parsed, diags := hclsyntax.ParseConfig(c.Data, c.File, hcl.InitialPos)
	if diags.HasErrors() {
		return false, diags
	}
	body, ok := parsed.Body.(*hclsyntax.Body)
	if !ok {
		return false, errors.New("it is not HCL")
	}
	for _, block := range body.Blocks {
		switch block.Type {
		case "provider_installation":
			own = true
			if err := c.installation(block.Body); err != nil {
				return own, err
			}
		case "credentials_helper":
			if len(block.Labels) == 1 {
				if err := c.helper(block.Labels[0], home); err != nil {
					return own, err
				}
			}
		}
	}
	return own, nil
}

// installation notes the mirrors.
func (c *Config) installation(body *hclsyntax.Body) error {
	for _, method := range body.Blocks {
		attribute := method.Body.Attributes["path"]
		if method.Type != "filesystem_mirror" || attribute == nil {
			continue
		}
		path := modulecode.StringAttribute(attribute.AsHCLAttribute())
		if !filepath.IsAbs(path) {
			return fmt.Errorf("filesystem_mirror: path %q is not absolute", path)
		}
		c.Mirrors = append(c.Mirrors, filepath.Clean(path))
	}
	return nil
}

// helper notes a credentials helper, where the engine would find it.
func (c *Config) helper(name, home string) error {
	name = helperPrefix + name
	if strings.ContainsRune(name, filepath.Separator) {
		return fmt.Errorf("credentials_helper %q: not a name", name)
	}
	for _, dir := range []string{filepath.Join(home, ".terraform.d", "plugins"), "/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.IsAbs(path) {
			c.helpers = append(c.helpers, path)
			return nil
		}
	}
	return fmt.Errorf("credentials_helper: there is no %s in .terraform.d/plugins of the agent's home folder", name)
}

// Furnish puts into the home folder of an attempt what its engine looks for
// there.
func (c Config) Furnish(home string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	for _, helper := range c.helpers {
		data, err := os.ReadFile(helper)
		if err != nil {
			return err
		}
		to := filepath.Join(home, ".terraform.d", "plugins", filepath.Base(helper))
		err = os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			err = os.WriteFile(to, data, 0o700) //nolint:gosec // a program
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
