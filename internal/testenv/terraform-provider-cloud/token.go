package main

import (
	"context"
	"crypto/rand"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// token is an ephemeral resource: it is in no plan and in no state.
type token struct{}

// Metadata names the ephemeral resource.
func (token) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "cloud_token"
}

// Schema says what a token has.
func (token) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"name":  schema.StringAttribute{Required: true},
		"value": schema.StringAttribute{Computed: true},
	}}
}

// Open makes a value, which begins with the name.
func (token) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m struct {
		Name  types.String `tfsdk:"name"`
		Value types.String `tfsdk:"value"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Value = types.StringValue(m.Name.ValueString() + "-" + rand.Text())
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}
