package show

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// meaningText is what a reason means, in the words that comments have.
func meaningText(r holdfast.Reason) string {
	if r == "" {
		return ""
	}
	return r.Info().Words
}

// helpText is what can be done about the reason for which a cluster waits: the command
// that helps, and the hint. A hint that has the command already gets the cluster's name.
func helpText(r holdfast.Reason, cluster string) string {
	if r == "" {
		return ""
	}
	info, command := r.Info(), r.Command(cluster)
	general := "`" + strings.TrimSuffix(r.Command(""), " CLUSTER") + "`"
	switch {
	case command == "":
		return info.Hint
	case strings.Contains(info.Hint, general):
		return strings.Replace(info.Hint, general, "`"+command+"`", 1)
	case info.Line == "":
		command += ": " + info.Does
	}
	return strings.TrimSuffix(command+"\n"+info.Hint, "\n")
}
