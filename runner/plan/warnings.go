package plan

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// warningsIn returns the warnings in what an engine printed, with or without
// its frames.
func warningsIn(text string) []holdfast.Diagnostic {
	var found []holdfast.Diagnostic
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		summary, ok := strings.CutPrefix(unframed(lines[i]), "Warning: ")
		if !ok {
			continue
		}
		d := holdfast.Diagnostic{Severity: "warning", Summary: strings.TrimSpace(summary)}
		var detail []string
		for i++; i < len(lines) && !endsDiagnostic(lines[i]); i++ {
			line := unframed(lines[i])
			switch trimmed := strings.TrimSpace(line); {
			case strings.HasPrefix(line, "  with ") && strings.HasSuffix(line, ","):
				d.Address = strings.TrimSuffix(strings.TrimPrefix(line, "  with "), ",")
			case strings.HasPrefix(line, "  on ") && strings.HasSuffix(line, ":") && d.File == "":
				_, _ = fmt.Sscanf(line, "  on %s line %d", &d.File, &d.Line)
			case trimmed == "" && len(detail) > 0:
				detail = append(detail, "")
			case strings.HasPrefix(line, " ") && len(detail) == 0: // the source that it is about
			case trimmed != "":
				detail = append(detail, line)
			}
		}
		i--
		d.Detail = strings.TrimSpace(strings.Join(detail, "\n"))
		found = append(found, d)
	}
	return found
}

func unframed(line string) string {
	line = strings.TrimRight(line, "\r")
	if rest, ok := strings.CutPrefix(line, "│ "); ok {
		return rest
	}
	return strings.TrimPrefix(line, "│")
}

func endsDiagnostic(line string) bool {
	plain := unframed(line)
	return strings.HasPrefix(line, "╵") || strings.HasPrefix(line, "────") || strings.HasPrefix(plain, "Warning: ") ||
		strings.HasPrefix(plain, "Error: ") || strings.HasPrefix(plain, "Saved the plan to:") ||
		strings.HasPrefix(plain, "Plan: ") || strings.HasPrefix(plain, "Releasing state lock")
}
