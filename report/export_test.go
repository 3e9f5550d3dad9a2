package report

// Known reports whether there are words for a reason, other than its own.
func Known(reason string) bool { return reasons[reason].words != "" }
