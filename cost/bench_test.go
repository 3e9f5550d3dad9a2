package cost_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/cost"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/cost/prices"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// bigPlan changes 500 resources: each fifth is a node group with its launch template, the
// others are what is around them, and all have dozens of attributes.
func bigPlan() plandoc.Document {
	d := plandoc.Document{Version: plandoc.Version}
	for i := range 100 {
		around := func(name string, more tree) plandoc.Resource {
			v := tree{}
			for n := range 40 {
				v[fmt.Sprintf("attribute_%02d", n)] = fmt.Sprintf("a value of some length, number %d of %d", n, i)
			}
			after := tree{}
			for key, value := range more {
				v[key], after[key] = value, value
			}
			for key, value := range v {
				after[key] = value
			}
			after["attribute_00"] = "another one"
			v["region"], after["region"] = "us-east-1", "us-east-1"
			if _, ok := after["scaling_config"]; ok {
				after["scaling_config"] = list{tree{"desired_size": 4, "min_size": 4, "max_size": 9}}
			}
			return resource(name, v, after)
		}
		id := fmt.Sprintf("lt-%03d", i)
		d.Resources = append(d.Resources,
			around(fmt.Sprintf(`aws_launch_template.pool["p%03d"]`, i), template(id, 1, "m7i.large", 50)),
			around(fmt.Sprintf(`aws_eks_node_group.pool["p%03d"]`, i), group(tree{"id": id, "version": "1"}, 3, 6)),
			around(fmt.Sprintf(`aws_nat_gateway.this["p%03d"]`, i), nil),
			around(fmt.Sprintf(`aws_ebs_volume.this["p%03d"]`, i), tree{"type": "gp3", "size": 100}),
			around(fmt.Sprintf(`aws_security_group.this["p%03d"]`, i), nil))
	}
	d.Sort()
	return d
}

// BenchmarkEstimate is the cost of a plan that changes 500 resources: 20 ms at most.
func BenchmarkEstimate(b *testing.B) {
	d := bigPlan()
	chain := price.Chain{prices.Embedded{}}
	if c := cost.Estimate(cost.Input{Document: d}, chain); len(c.Resources) != 100 || len(c.Unpriced) > 0 {
		b.Fatalf("%d resources, %d unpriced", len(c.Resources), len(c.Unpriced))
	}
	for b.Loop() {
		cost.Estimate(cost.Input{Document: d}, chain)
	}
}
