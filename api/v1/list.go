package v1

// List is a part of a list, in an order that does not change.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // What to give as the parameter cursor to read on; absent: there is no more.
}
