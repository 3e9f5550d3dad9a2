package rootmodule_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/rootmodule"
)

func TestSecretRefCheck(t *testing.T) {
	t.Parallel()
	for _, ref := range []rootmodule.SecretRef{
		{Env: "DB_PASSWORD"},
		{Env: "_x9"},
		{File: "/run/secrets/db"},
		{File: "/run/sécrets/a b"},
		{Store: "vault", Key: "prod/db"},
		{Store: "1password.eu", Key: "op://vault/item name/field"},
		{Store: "a-b_c", Key: "/prod/db"},
		{Store: "v", Key: "_x"},
		{Store: "v", Key: "arn:aws:secretsmanager:eu-west-1:1:secret:db-a1"},
		{Store: "v", Key: "ключ"},
		{Store: "v", Key: "..x/y.."},
	} {
		if err := ref.Check(); err != nil {
			t.Errorf("%+v: %v", ref, err)
		}
	}
	for _, ref := range []rootmodule.SecretRef{
		{},
		{Key: "forbidden"},
		{Env: "A", File: "/forbidden"},
		{Env: "A", Store: "v", Key: "forbidden"},
		{Env: "A", Key: "forbidden"},
		{Env: "forbidden fruit"},
		{Env: "A=forbidden"},
		{Env: "1forbidden"},
		{Env: "forbidden-fruit"},
		{Env: strings.Repeat("forbidden", 100)},
		{File: "forbidden"},
		{File: "~/forbidden"},
		{File: "/a\nforbidden"},
		{File: "/\xffforbidden"},
		{File: "/" + strings.Repeat("forbidden", 1000)},
		{Store: "v"},
		{Store: "-v", Key: "k"},
		{Store: "a/forbidden", Key: "k"},
		{Store: ".forbidden", Key: "k"},
		{Store: "v", Key: "-forbidden"},
		{Store: "v", Key: "@forbidden"},
		{Store: "v", Key: " forbidden"},
		{Store: "v", Key: "forbidden "},
		{Store: "v", Key: "FILE:///forbidden"},
		{Store: "v", Key: "fileb://forbidden"},
		{Store: "v", Key: "a/../forbidden"},
		{Store: "v", Key: `a\..\forbidden`},
		{Store: "v", Key: ".."},
		{Store: "v", Key: "a\x00forbidden"},
		{Store: "v", Key: "$(forbidden)"},
		{Store: "v", Key: strings.Repeat("forbidden", 200)},
	} {
		if err := ref.Check(); err == nil || strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%+v: %v", ref, err)
		}
	}
}
