package decision

import "github.com/holdfast-dev/holdfast"

// LastApplied is what was last applied, or what a later apply has begun with and
// not ended well: its resources are in the state as well.
func LastApplied(rec holdfast.ClusterRecord, branch []holdfast.Run) holdfast.Applied {
	for _, run := range branch {
		if run.ID <= max(rec.Applied.Run, rec.Life) {
			break
		}
		if run.Kind == holdfast.RunApply && run.Begun {
			last := AppliedBy(run)
			if last.EngineVersion == "" { // its agent died before it could say
				last.EngineName, last.EngineVersion = rec.Applied.EngineName, rec.Applied.EngineVersion
			}
			return last
		}
	}
	return rec.Applied
}

// AppliedBy is what a cluster's record says after a run has applied.
func AppliedBy(run holdfast.Run) holdfast.Applied {
	return holdfast.Applied{
		Run: run.ID, Revision: run.Revision, SourceDigest: run.SourceDigest, InputDigest: run.InputDigest,
		Bundle: run.Bundle, Dir: run.Dir, StateLocation: run.StateLocation, Template: run.Template,
		EngineName: run.EngineName, EngineVersion: run.EngineVersion, Document: run.Document, At: run.FinishedAt,
		OutputRoles: run.OutputRoles,
	}
}

// DriftOutline is what a cluster's record alone says of its drift.
func DriftOutline(rec holdfast.ClusterRecord) holdfast.DriftReport {
	report := holdfast.DriftReport{
		Cluster: rec.Name, Document: rec.Applied.Document, State: rec.Drift,
		Template: rec.Applied.Template, Revision: rec.Applied.Revision,
		NotApplied: rec.Desired.SourceDigest != "" && !rec.Desired.SourceDigest.Equal(rec.Applied.SourceDigest),
	}
	if rec.Applied.Run == "" {
		report.Document = rec.Desired.Document
	}
	report.Document.Drift = DriftSettings(rec)
	if report.NotApplied {
		report.Waiting = rec.Waiting
	}
	return report
}
