package runner

import (
	"encoding/json"
	"errors"
	"regexp"
)

// maxVersion bounds what a binary may say when it is asked for its version, in
// bytes.
const maxVersion = 1 << 20

var plainVersion = regexp.MustCompile(`^(?:Terraform|OpenTofu) v(\S+)`)

// readVersion reads the answer to `version -json`. Engines that are too old for
// it answer in words.
func readVersion(said []byte) (string, error) {
	var answer struct {
		Version string `json:"terraform_version"`
	}
	if json.Unmarshal(said, &answer) == nil && answer.Version != "" {
		return answer.Version, nil
	}
	if m := plainVersion.FindSubmatch(said); m != nil {
		return string(m[1]), nil
	}
	return "", errors.New("no version in its answer")
}
