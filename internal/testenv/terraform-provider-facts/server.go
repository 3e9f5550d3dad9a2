package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// server is the provider. What it does not implement is not asked for.
type server struct {
	tfprotov6.ProviderServer
	facts    facts
	replaces replaces
}

// GetMetadata tells what there is.
func (s *server) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	resp := &tfprotov6.GetMetadataResponse{}
	for name := range s.facts.Resources {
		resp.Resources = append(resp.Resources, tfprotov6.ResourceMetadata{TypeName: name})
	}
	for name := range s.facts.DataSources {
		resp.DataSources = append(resp.DataSources, tfprotov6.DataSourceMetadata{TypeName: name})
	}
	return resp, nil
}

// GetProviderSchema makes schemas of the facts.
func (s *server) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	resp := &tfprotov6.GetProviderSchemaResponse{
		Provider:          &tfprotov6.Schema{Block: s.facts.Config.schema()},
		ResourceSchemas:   map[string]*tfprotov6.Schema{},
		DataSourceSchemas: map[string]*tfprotov6.Schema{},
	}
	for name, b := range s.facts.Resources {
		resp.ResourceSchemas[name] = &tfprotov6.Schema{Block: b.schema()}
	}
	for name, b := range s.facts.DataSources {
		resp.DataSourceSchemas[name] = &tfprotov6.Schema{Block: b.schema()}
	}
	return resp, nil
}

// GetResourceIdentitySchemas has none.
func (s *server) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

// ValidateProviderConfig leaves it at what the schema says.
func (s *server) ValidateProviderConfig(_ context.Context, req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config}, nil
}

// ConfigureProvider refuses to go without what FACTS_NEEDS names. What is
// unknown may be there later.
func (s *server) ConfigureProvider(_ context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	value, err := req.Config.Unmarshal(s.facts.Config.schema().ValueType())
	if err != nil {
		return nil, err
	}
	var attrs map[string]tftypes.Value
	if err := value.As(&attrs); err != nil {
		return nil, err
	}
	resp := &tfprotov6.ConfigureProviderResponse{}
	for need := range strings.SplitSeq(os.Getenv("FACTS_NEEDS"), ",") {
		provider, name, _ := strings.Cut(need, ".")
		if provider == s.facts.Name && !given(attrs[name]) {
			resp.Diagnostics = append(resp.Diagnostics, &tfprotov6.Diagnostic{
				Severity: tfprotov6.DiagnosticSeverityError,
				Summary:  fmt.Sprintf("provider %s is not configured: it has no %s", provider, name),
			})
		}
	}
	return resp, nil
}

// given reports whether an argument has a value, or a block is there.
func given(v tftypes.Value) bool {
	if v.IsNull() {
		return false
	}
	var elems []tftypes.Value
	if v.IsKnown() && v.Type().Is(tftypes.List{}) && v.As(&elems) == nil {
		return len(elems) > 0
	}
	return true
}

// StopProvider has nothing to stop.
func (s *server) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

// ValidateResourceConfig leaves it at what the schema says.
func (s *server) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

// ValidateDataResourceConfig leaves it at what the schema says.
func (s *server) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

// UpgradeResourceState reads the state as it is.
func (s *server) UpgradeResourceState(_ context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	value, err := req.RawState.Unmarshal(s.facts.Resources[req.TypeName].schema().ValueType())
	if err != nil {
		return nil, err
	}
	state, err := dynamic(value)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: state}, err
}

// ReadResource finds the resource as it was left.
func (s *server) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private}, nil
}

// PlanResourceChange makes unknown what is the provider's to set and is not set.
func (s *server) PlanResourceChange(_ context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	b := s.facts.Resources[req.TypeName]
	value, err := req.ProposedNewState.Unmarshal(b.schema().ValueType())
	if err != nil {
		return nil, err
	}
	if !value.IsNull() {
		if value, err = b.fill(value, func(_ string, typ tftypes.Type) tftypes.Value {
			return tftypes.NewValue(typ, tftypes.UnknownValue)
		}); err != nil {
			return nil, err
		}
	}
	prior, err := req.PriorState.Unmarshal(b.schema().ValueType())
	if err != nil {
		return nil, err
	}
	state, err := dynamic(value)
	return &tfprotov6.PlanResourceChangeResponse{
		PlannedState: state, RequiresReplace: s.replaces.changed(req.TypeName, prior, value),
	}, err
}

// ApplyResourceChange does as planned, and makes up what was unknown.
func (s *server) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	value, err := req.PlannedState.Unmarshal(s.facts.Resources[req.TypeName].schema().ValueType())
	if err != nil {
		return nil, err
	}
	value, err = tftypes.Transform(value, func(path *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if v.IsKnown() {
			return v, nil
		}
		name := ""
		if step, ok := path.LastStep().(tftypes.AttributeName); ok {
			name = string(step)
		}
		return madeUp(name, v.Type()), nil
	})
	if err != nil {
		return nil, err
	}
	state, err := dynamic(value)
	return &tfprotov6.ApplyResourceChangeResponse{NewState: state}, err
}

// ReadDataSource makes up what is the provider's to say.
func (s *server) ReadDataSource(_ context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	b := s.facts.DataSources[req.TypeName]
	value, err := req.Config.Unmarshal(b.schema().ValueType())
	if err != nil {
		return nil, err
	}
	with := madeUp
	if slices.Contains(strings.Split(os.Getenv("FACTS_EMPTY"), ","), req.TypeName) {
		with = nothing
	}
	if value, err = b.fill(value, with); err != nil {
		return nil, err
	}
	state, err := dynamic(value)
	return &tfprotov6.ReadDataSourceResponse{State: state}, err
}

func dynamic(value tftypes.Value) (*tfprotov6.DynamicValue, error) {
	out, err := tfprotov6.NewDynamicValue(value.Type(), value)
	return &out, err
}

// fill replaces the null values of what the provider sets.
func (b *body) fill(value tftypes.Value, with func(name string, typ tftypes.Type) tftypes.Value) (tftypes.Value, error) {
	var attrs map[string]tftypes.Value
	if err := value.As(&attrs); err != nil {
		return value, err
	}
	for name, a := range b.Attributes {
		region := name == "region" && a.mode == "optional" && with("", tftypes.String).IsKnown()
		if (a.mode == "computed" || region) && attrs[name].IsNull() {
			attrs[name] = with(name, attrs[name].Type())
		}
	}
	for name, inner := range b.Blocks {
		old := attrs[name]
		if old.IsNull() || !old.IsKnown() {
			continue
		}
		if inner.Nesting == "single" {
			filled, err := inner.fill(old, with)
			if err != nil {
				return value, err
			}
			attrs[name] = filled
			continue
		}
		var elems []tftypes.Value
		if err := old.As(&elems); err != nil {
			return value, err
		}
		for i := range elems {
			if !elems[i].IsKnown() {
				continue
			}
			filled, err := inner.fill(elems[i], with)
			if err != nil {
				return value, err
			}
			elems[i] = filled
		}
		attrs[name] = tftypes.NewValue(old.Type(), elems)
	}
	return tftypes.NewValue(value.Type(), attrs), nil
}

const kubeconfig = `clusters: [{name: c, cluster: {server: "https://c", certificate-authority-data: ZmFrZQ==}}]
users: [{name: u, user: {token: t}}]
`

// madeUp is a value of the type that looks like one of that name.
func madeUp(name string, typ tftypes.Type) tftypes.Value {
	switch t := typ.(type) {
	case tftypes.List:
		return tftypes.NewValue(typ, some(t.ElementType))
	case tftypes.Set:
		return tftypes.NewValue(typ, some(t.ElementType))
	case tftypes.Map:
		return tftypes.NewValue(typ, map[string]tftypes.Value{})
	case tftypes.Object:
		attrs := map[string]tftypes.Value{}
		for inner, innerType := range t.AttributeTypes {
			attrs[inner] = madeUp(inner, innerType)
		}
		return tftypes.NewValue(typ, attrs)
	}
	switch {
	case typ.Is(tftypes.Number):
		return tftypes.NewValue(typ, 1)
	case typ.Is(tftypes.Bool):
		return tftypes.NewValue(typ, false)
	case !typ.Is(tftypes.String):
		return tftypes.NewValue(typ, nil)
	case strings.Contains(name, "version"):
		return tftypes.NewValue(typ, "1.33.5")
	case name == "kubeconfig":
		return tftypes.NewValue(typ, base64.StdEncoding.EncodeToString([]byte(kubeconfig)))
	case name == "region":
		return tftypes.NewValue(typ, os.Getenv("FACTS_REGION"))
	case name == "id":
		return tftypes.NewValue(typ, "1")
	}
	return tftypes.NewValue(typ, base64.StdEncoding.EncodeToString([]byte(name)))
}

// nothing is what a data source says that finds nothing.
func nothing(name string, typ tftypes.Type) tftypes.Value {
	if list, ok := typ.(tftypes.List); ok {
		return tftypes.NewValue(list, []tftypes.Value{})
	}
	if name == "id" {
		return madeUp(name, typ)
	}
	return tftypes.NewValue(typ, nil)
}

func some(typ tftypes.Type) []tftypes.Value {
	if !typ.Is(tftypes.String) {
		return []tftypes.Value{madeUp("", typ)}
	}
	var out []tftypes.Value
	for i := range 3 {
		out = append(out, tftypes.NewValue(typ, fmt.Sprintf("thing-%d", i)))
	}
	return out
}
