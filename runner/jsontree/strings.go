package jsontree

import "encoding/json"

// AppendStrings appends the texts and numbers in a decoded JSON value.
func AppendStrings(list []string, value any) []string {
	switch value := value.(type) {
	case string:
		list = append(list, value)
	case json.Number:
		list = append(list, value.String())
	case []any:
		for _, item := range value {
			list = AppendStrings(list, item)
		}
	case map[string]any:
		for _, item := range value {
			list = AppendStrings(list, item)
		}
	}
	return list
}
