// Package words is what pages and their forms say alike.
//
// It owns the addresses of pages, the counts of a plan as they are shown, and small changes
// of texts: a capital letter in front, the marks of Markdown taken away. Packages pages and
// forms call it; all of it is functions of their arguments.
//
// It asks nobody for anything, and knows neither requests nor who looks at a page.
package words
