package plandoctest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/holdfast-dev/holdfast/plandoc"
)

// HMAC returns something of the form of an HMAC.
func HMAC(b byte) string {
	return base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

// Sample has each kind of change and of value.
func Sample() plandoc.Document {
	secret := plandoc.Mark{HMAC: HMAC(1)}
	d := plandoc.Document{
		Version: plandoc.Version,
		Resources: []plandoc.Resource{
			{
				Address: "aws_vpc.main", Type: "aws_vpc", Provider: "registry.terraform.io/hashicorp/aws",
				Actions: []string{"delete", "create"}, Replace: []string{"cidr"}, Reason: "replace_because_cannot_update",
				Before: Value(map[string]any{"cidr": "10.0.0.0/16", "id": "vpc-1", "tags": map[string]any{"a": "1"}}),
				After: Value(map[string]any{
					"cidr": "10.8.0.0/16", "id": plandoc.Mark{Unknown: true}, "tags": map[string]any{"a": "2"},
				}),
			},
			{
				Address: "aws_vpc.main", Deposed: "1a2b3c4d", Type: "aws_vpc", Actions: []string{"delete"},
				Before: Value(map[string]any{"cidr": "10.9.0.0/16"}),
			},
			{
				Address: "module.db.aws_db_instance.main", Type: "aws_db_instance", Actions: []string{"update"},
				Before: Value(map[string]any{
					"password": secret, "size": json.Number("1"), "user_data": plandoc.Mark{HMAC: HMAC(2), Text: "a (sensitive value)"},
				}),
				After: Value(map[string]any{
					"password": plandoc.Mark{HMAC: HMAC(3), Unknown: true}, "size": json.Number("2"),
					"user_data": plandoc.Mark{HMAC: HMAC(4), Text: "b (sensitive value)"},
				}),
			},
			{
				Address: "aws_s3_bucket.new", Previous: "aws_s3_bucket.old", Type: "aws_s3_bucket", Actions: []string{"no-op"},
				Before: Value(map[string]any{"id": "b"}), After: Value(map[string]any{"id": "b"}),
			},
			{
				Address: "aws_s3_bucket.taken", Type: "aws_s3_bucket", Actions: []string{"no-op"},
				Importing: Value("bucket-1"),
				Before:    Value(map[string]any{"id": "b"}), After: Value(map[string]any{"id": "b"}),
			},
		},
		Outputs: []plandoc.Output{
			{Name: "endpoint", Actions: []string{"create"}, After: Value(plandoc.Mark{Unknown: true})},
			{Name: "token", Actions: []string{"update"}, Before: Value(secret), After: Value(plandoc.Mark{HMAC: HMAC(5)})},
		},
	}
	d.Sort()
	return d
}
