package modulecode

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
)

// LockedProviders returns the versions that a provider lock file pins, as far as
// it can be read.
func LockedProviders(lock []byte) map[string]string {
	if len(lock) == 0 || len(lock) > MaxFile {
		return nil
	}
	file, _, err := boundedhcl.ParseFile(lock, "lock file")
	if err != nil {
		return nil
	}
	content, _, _ := file.Body.PartialContent(&hcl.BodySchema{
		Blocks: []hcl.BlockHeaderSchema{{Type: "provider", LabelNames: []string{"source"}}},
	})
	if content == nil {
		return nil
	}
	versions := map[string]string{}
	for _, block := range content.Blocks {
		attributes, _ := block.Body.JustAttributes()
		versions[block.Labels[0]] = StringAttribute(attributes["version"])
	}
	return versions
}
