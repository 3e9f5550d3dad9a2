package serve

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// Check reports everything that would keep a server with this configuration from doing
// its work: certificates, and each secret, key and file that cannot be read. It makes and
// changes nothing.
func Check(ctx context.Context, cfg *config.Config, now time.Time) error {
	wrong, _ := certificateFaults(cfg.Server, now)
	wrong = append(wrong, keyFaults(cfg.Encryption)...)
	// Without root, nobody can say which users the agents of a server that is root run
	// as.
	if accounts, err := agentAccounts(cfg.Agent); err == nil {
		wrong = append(wrong, slotUsersFault(cfg.Agent, accounts))
	}
	wrong = append(wrong, unreadable(cfg)...)
	wrong = append(wrong, templateSecrets(cfg)...)
	if _, err := redisTLS(cfg.Lock.Redis.TLS); err != nil {
		wrong = append(wrong, err)
	}
	if _, err := priceBooks(cfg); err != nil {
		wrong = append(wrong, err)
	}
	s := &services{cfg: cfg, logger: slog.New(slog.DiscardHandler)}
	wrong = append(wrong, s.exposed(ctx)...)
	for i, f := range cfg.Forges {
		if f.App.PrivateKeyFile == "" {
			continue
		}
		if data, err := os.ReadFile(f.App.PrivateKeyFile); err == nil && !isPrivateKey(data) {
			wrong = append(wrong, fmt.Errorf("forges[%d].app.privateKeyFile: %s is not a private key in PEM", i, f.App.PrivateKeyFile))
		}
	}
	return errors.Join(wrong...)
}

// keyFaults finds the encryption keys that the store would be refused with. One that is
// missing is made by the first start, a former one is not.
func keyFaults(e config.Encryption) (wrong []error) {
	if _, err := seal.LoadKey(e.KeyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		wrong = append(wrong, fmt.Errorf("encryption.keyFile: %w", err))
	}
	for i, file := range e.OldKeyFiles {
		if _, err := seal.LoadKey(file); err != nil {
			wrong = append(wrong, fmt.Errorf("encryption.oldKeyFiles[%d]: %w", i, err))
		}
	}
	return wrong
}

// readFiles are the keys that name a file which has to be there, apart from secrets.
var readFiles = []string{"privateKeyFile", "sshKeyFile", "knownHostsFile", "cliConfigFile", "caFile"}

// unreadable finds the secrets and files of a configuration that cannot be read, each with
// its place.
func unreadable(cfg *config.Config) (wrong []error) {
	eachSetting(reflect.ValueOf(cfg).Elem(), "", "", func(at, key string, v reflect.Value) {
		var err error
		if secret, ok := v.Interface().(config.Secret); ok {
			if !secret.IsZero() {
				_, err = secret.Value()
			}
		} else if slices.Contains(readFiles, key) && v.String() != "" {
			_, err = os.ReadFile(v.String())
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", at, err))
		}
	})
	return wrong
}

// eachSetting calls visit with each secret and each text of a part of the configuration, in
// order, with its place and the key that it is under.
func eachSetting(v reflect.Value, at, key string, visit func(at, key string, v reflect.Value)) {
	if _, ok := v.Interface().(config.Secret); ok || v.Kind() == reflect.String {
		visit(at, key, v)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if v.Type().Field(i).Anonymous {
				eachSetting(v.Field(i), at, key, visit)
			}
			if name != "" && name != "-" {
				eachSetting(v.Field(i), strings.TrimPrefix(at+"."+name, "."), name, visit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachSetting(v.Index(i), fmt.Sprintf("%s[%d]", at, i), key, visit)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range keys {
			eachSetting(v.MapIndex(name), at+"."+name.String(), key, visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachSetting(v.Elem(), at, key, visit)
		}
	default: // neither a secret nor a text
	}
}

func isPrivateKey(data []byte) bool {
	block, _ := pem.Decode(data)
	if block == nil {
		return false
	}
	_, pkcs1 := x509.ParsePKCS1PrivateKey(block.Bytes)
	_, pkcs8 := x509.ParsePKCS8PrivateKey(block.Bytes)
	return pkcs1 == nil || pkcs8 == nil
}

// ConfigError is what commands say of a configuration file with faults.
func ConfigError(path string, err error) error {
	return hint.New(
		fmt.Errorf("configuration is not valid:\n%w", err),
		"docs/config.md has every key of "+path,
	)
}
