// Package wording owns the small phrases of faults: what people wrote, shortened and
// made visible, what they may have meant, and lists and numbers as a sentence has
// them.
//
// All packages below templates call it. It knows neither documents nor schemas, and
// makes no fault itself.
package wording
