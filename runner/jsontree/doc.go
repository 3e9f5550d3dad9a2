// Package jsontree is what the rooms of the runner share to look into JSON whose
// shape only an engine or a provider knows: nil, bool, json.Number, string,
// map[string]any and []any. It keeps numbers as they are written, and its errors
// never quote what they are about, which may be secret.
//
// It is called by the runner's rooms, is pure, and knows neither plans nor
// states.
package jsontree
