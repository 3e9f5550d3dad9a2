// Package console renders the pages that people look at in a browser: templates, view
// models, styles, script, icons and fonts, all of them in the program.
//
// It owns how things look and which words are next to which mark; what is to be seen it
// is given as plain view models (view_*.go), so that it knows neither the API nor HTTP
// requests. server/pages fills these models from what api/v1 says and calls Render. It
// never decides what somebody may see, never reads a record, and puts no markup around
// other people's texts but by its own functions (text.go), which escape them first.
//
// Pages work under a Content-Security-Policy without eval and with nothing inline: see
// Policy, and the test that looks for what such a policy breaks in silence. What was not
// written here is in static/lib, as npm has it; lib.sh fetches and verifies it.
package console
