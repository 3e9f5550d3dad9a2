// Command terraform-provider-cloud is a cloud for tests, whose objects are JSON files
// in a folder: who edits or removes one changes the world behind the engine's back. It
// is a separate module, so that the product does not depend on what only providers
// need.
//
//	provider "cloud" { folder = "/the/world" }
//
// Its resources are cloud_network, cloud_cluster, cloud_node_pool and linode_volume, which
// has a price, all of the same kind. The object web of type cloud_cluster is the file
// cloud_cluster.web.json:
//
//	{"id": "cloud_cluster-web", "name": "web", "size": 3, "tags": {"team": "a"},
//	 "scaling": [{"min": 1, "max": 5}], "status": "ready"}
//
// The ephemeral resource cloud_token has another value each time that it is opened; an
// object keeps what it is given as token, which is write-only.
//
// Other files make it misbehave. OPERATION is create, read, update or delete:
//
//	fail.OPERATION.web   the operation fails with what the file says: its first
//	                     line is the summary, the rest the detail
//	hold.OPERATION.web   the operation waits until the file is gone
//	die.OPERATION.web    the provider's process ends there and then
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	err := providerserver.Serve(context.Background(), func() provider.Provider { return cloud{} }, providerserver.ServeOpts{
		Address: "registry.terraform.io/holdfast-dev/cloud", ProtocolVersion: 5,
	})
	if err != nil {
		log.Fatal(err)
	}
}

// cloud is the provider.
type cloud struct{}

// Metadata names the provider.
func (cloud) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "cloud"
}

// Schema says how the provider is configured.
func (cloud) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"folder": schema.StringAttribute{Required: true},
	}}
}

// Configure hands the folder to the resources.
func (cloud) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config struct {
		Folder types.String `tfsdk:"folder"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.ResourceData = world(config.Folder.ValueString())
}

// EphemeralResources are tokens.
func (cloud) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return token{} }}
}

// DataSources returns nothing: the provider has no data sources.
func (cloud) DataSources(context.Context) []func() datasource.DataSource { return nil }

// Resources are all of one kind.
func (cloud) Resources(context.Context) []func() resource.Resource {
	var list []func() resource.Resource
	for _, kind := range []string{"cloud_network", "cloud_cluster", "cloud_node_pool", "linode_volume"} {
		list = append(list, func() resource.Resource { return &thing{kind: kind} })
	}
	return list
}
