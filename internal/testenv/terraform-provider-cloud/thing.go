package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// world is the folder that the objects are in.
type world string

// object is what a file of the world holds.
type object struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Region   string            `json:"region,omitempty"`
	Size     *int64            `json:"size,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	Scaling  []limits          `json:"scaling,omitempty"`
	Password string            `json:"password,omitempty"`
	Token    string            `json:"token,omitempty"`
	Status   string            `json:"status"`
}

type limits struct {
	Min int64 `json:"min" tfsdk:"min"`
	Max int64 `json:"max" tfsdk:"max"`
}

func (w world) file(kind, name string) string { return filepath.Join(string(w), kind+"."+name+".json") }

// meet lets the files that ask for misbehaviour have their way.
func (w world) meet(ctx context.Context, operation, name string, diags *diag.Diagnostics) {
	if _, err := os.Stat(filepath.Join(string(w), "die."+operation+"."+name)); err == nil {
		os.Exit(1)
	}
	for w.held(operation, name) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if ctx.Err() != nil {
		diags.AddError("Interrupted", "The engine told the provider to stop.")
		return
	}
	data, err := os.ReadFile(filepath.Join(string(w), "fail."+operation+"."+name))
	if err == nil {
		summary, detail, _ := strings.Cut(string(data), "\n")
		diags.AddError(summary, strings.TrimSpace(detail))
	}
}

func (w world) held(operation, name string) bool {
	_, err := os.Stat(filepath.Join(string(w), "hold."+operation+"."+name))
	return err == nil
}

// model is an object as the engine knows it.
type model struct {
	ID       types.String `tfsdk:"id"`
	Name     types.String `tfsdk:"name"`
	Region   types.String `tfsdk:"region"`
	Size     types.Int64  `tfsdk:"size"`
	Tags     types.Map    `tfsdk:"tags"`
	Scaling  []limits     `tfsdk:"scaling"`
	Password types.String `tfsdk:"password"`
	Token    types.String `tfsdk:"token"`
	Status   types.String `tfsdk:"status"`
}

// thing is a resource.
type thing struct {
	kind  string
	world world
}

// Metadata names the resource.
func (t *thing) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = t.kind
}

// Schema says what a thing has.
func (t *thing) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		Attributes: map[string]schema.Attribute{
			"id":       schema.StringAttribute{Computed: true, PlanModifiers: keep},
			"name":     schema.StringAttribute{Required: true, PlanModifiers: replace},
			"region":   schema.StringAttribute{Optional: true, PlanModifiers: replace},
			"size":     schema.Int64Attribute{Optional: true},
			"tags":     schema.MapAttribute{Optional: true, ElementType: types.StringType},
			"password": schema.StringAttribute{Optional: true, Sensitive: true},
			"token":    schema.StringAttribute{Optional: true, WriteOnly: true},
			"status":   schema.StringAttribute{Computed: true, PlanModifiers: keep},
		},
		Blocks: map[string]schema.Block{
			"scaling": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
				"min": schema.Int64Attribute{Required: true},
				"max": schema.Int64Attribute{Required: true},
			}}},
		},
	}
}

// Configure takes the world.
func (t *thing) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if w, ok := req.ProviderData.(world); ok {
		t.world = w
	}
}

// Create makes an object; one of that name must not be there.
func (t *thing) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	t.world.meet(ctx, "create", m.Name.ValueString(), &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if _, err := os.Stat(t.world.file(t.kind, m.Name.ValueString())); err == nil {
		resp.Diagnostics.AddError("AlreadyExists", fmt.Sprintf("%s %q already exists.", t.kind, m.Name.ValueString()))
		return
	}
	m.ID = types.StringValue(t.kind + "-" + m.Name.ValueString())
	m.Status = types.StringValue("ready")
	t.save(ctx, m, req.Config, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// Read looks at the object; one that is not there is gone.
func (t *thing) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	t.world.meet(ctx, "read", m.Name.ValueString(), &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	o, err := t.load(m.Name.ValueString())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		resp.Diagnostics.AddError("Read "+t.kind, err.Error())
		return
	}
	m.ID, m.Status = types.StringValue(o.ID), types.StringValue(o.Status)
	m.Region, m.Password = orNull(o.Region), orNull(o.Password)
	m.Size, m.Scaling = types.Int64PointerValue(o.Size), o.Scaling
	m.Tags = types.MapNull(types.StringType)
	if len(o.Tags) > 0 {
		tags, diags := types.MapValueFrom(ctx, types.StringType, o.Tags)
		resp.Diagnostics.Append(diags...)
		m.Tags = tags
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// Update changes the object.
func (t *thing) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	t.world.meet(ctx, "update", m.Name.ValueString(), &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	t.save(ctx, m, req.Config, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// Delete removes the object.
func (t *thing) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	t.world.meet(ctx, "delete", m.Name.ValueString(), &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := os.Remove(t.world.file(t.kind, m.Name.ValueString())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		resp.Diagnostics.AddError("Delete "+t.kind, err.Error())
	}
}

// ImportState takes an object by its name.
func (t *thing) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("name"), req, resp)
}

func (t *thing) load(name string) (object, error) {
	var o object
	data, err := os.ReadFile(t.world.file(t.kind, name))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}

// save writes the object so that a reader sees the old one or the new one. What is
// write-only is in the configuration alone.
func (t *thing) save(ctx context.Context, m model, config tfsdk.Config, diags *diag.Diagnostics) {
	var given types.String
	diags.Append(config.GetAttribute(ctx, path.Root("token"), &given)...)
	o := object{
		ID: m.ID.ValueString(), Name: m.Name.ValueString(), Region: m.Region.ValueString(), Size: m.Size.ValueInt64Pointer(),
		Scaling: m.Scaling, Password: m.Password.ValueString(), Token: given.ValueString(), Status: m.Status.ValueString(),
	}
	diags.Append(m.Tags.ElementsAs(ctx, &o.Tags, false)...)
	data, err := json.MarshalIndent(o, "", "  ")
	if err == nil {
		name := t.world.file(t.kind, o.Name)
		if err = os.WriteFile(name+".new", append(data, '\n'), 0o644); err == nil {
			err = os.Rename(name+".new", name)
		}
	}
	if err != nil {
		diags.AddError("Write "+t.kind, err.Error())
	}
}

func orNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
