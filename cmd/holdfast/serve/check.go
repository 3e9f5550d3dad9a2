package serve

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// Check reports everything that would keep a server with this configuration from doing
// its work: certificates, and each secret, key and file that cannot be read. It makes and
// changes nothing.
func Check(cfg *config.Config, now time.Time) error {
	wrong, _ := certificateFaults(cfg.Server, now)
	wrong = append(wrong, keyFaults(cfg.Encryption)...)
	// Who is not root cannot say whom agents of a server that is root run as.
	if accounts, err := agentAccounts(cfg.Agent); err == nil {
		wrong = append(wrong, slotUsersFault(cfg.Agent, accounts))
	}
	wrong = append(wrong, unreadable(reflect.ValueOf(cfg).Elem(), "")...)
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
var readFiles = []string{"privateKeyFile", "sshKeyFile", "knownHostsFile", "cliConfigFile"}

// unreadable finds the secrets and files of a part of the configuration that cannot be
// read, each with its place.
func unreadable(v reflect.Value, at string) (wrong []error) {
	if secret, ok := v.Interface().(config.Secret); ok {
		if _, err := secret.Value(); !secret.IsZero() && err != nil {
			return []error{fmt.Errorf("%s: %w", at, err)}
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if key == "" || key == "-" {
				continue
			}
			place := strings.TrimPrefix(at+"."+key, ".")
			if field := v.Field(i); field.Kind() == reflect.String && slices.Contains(readFiles, key) && field.String() != "" {
				if _, err := os.ReadFile(field.String()); err != nil {
					wrong = append(wrong, fmt.Errorf("%s: %w", place, err))
				}
				continue
			}
			wrong = append(wrong, unreadable(v.Field(i), place)...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			wrong = append(wrong, unreadable(v.Index(i), fmt.Sprintf("%s[%d]", at, i))...)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			wrong = append(wrong, unreadable(v.MapIndex(key), at+"."+key.String())...)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return unreadable(v.Elem(), at)
		}
	default: // neither a secret nor a file
	}
	return wrong
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
