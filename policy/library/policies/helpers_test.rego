package holdfast.helpers_test

# change is one change of a resource, as engines print it.
change(type, actions, before, after) := {
	"address": sprintf("%s.this", [type]),
	"mode": "managed",
	"type": type,
	"name": "this",
	"change": {"actions": actions, "before": before, "after": after, "after_unknown": {}, "replace_paths": []},
}

# plan is an input with these changes.
plan(changes) := with_run(changes, {"kind": "plan", "destroys": false})

destruction(changes) := with_run(changes, {"kind": "plan", "destroys": true})

with_run(changes, run) := {
	"resource_changes": changes,
	"holdfast": {
		"run": run,
		"by_type": {type: [rc | some rc in changes; rc.type == type] | some c in changes; type := c.type},
	},
}

updated(type, before, after) := plan([change(type, ["update"], before, after)])
