package named_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/runner/named"
)

func TestNames(t *testing.T) {
	t.Parallel()
	n := named.New("bundle")
	n.Add(`resource "x" "y" {
  filename = "${path.module}/lambda.zip" # see json and README.
  source   = "dist"
  command  = "aws s3 sync ./build/site/ s3://bucket && sh run.sh | tee ../log/out.txt"
  pattern  = "*.py"
}`)
	n.Add("/workspace/bundle/infra/made by hand.zip")
	n.Add("/etc/passwd")
	for name, want := range map[string]bool{
		"lambda.zip": true, "infra/lambda.zip": true, "lambda.zip/x": false, "build/site": true, "infra/build/site": true, "build": false,
		"site": false, "dist": false, "json": false, "README": false, "json.py": false, "log/out.txt": true, "infra/made by hand.zip": true,
		"infra": false, "made by hand.zip": false, "x.py": false, "y/run.sh": true, "etc/passwd": true, "passwd": false, ".": false,
	} {
		if got := n.Has(name); got != want {
			t.Errorf("has(%q) = %t, want %t", name, got, want)
		}
	}
}
