package v1

import _ "embed"

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the description of the API, OpenAPI 3.1 as JSON. It is made from the
// types, their comments and Operations by `go test ./api/v1 -update`.
func OpenAPI() []byte { return openAPI }
