package github

import (
	"fmt"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// eachPage calls read for page after page, at most maxPages, and reports
// whether there would have been more.
func eachPage(opts *github.ListOptions, read func() (*github.Response, error)) (more bool, err error) {
	for range maxPages {
		resp, err := read()
		if err != nil {
			return false, err
		}
		if resp.NextPage == 0 {
			return false, nil
		}
		opts.Page = resp.NextPage
	}
	return true, nil
}

// steadyReads is how often a list is read at most until nothing goes from it.
const steadyReads = 5

// eachSteadyPage is eachPage for a list of which nothing may be missed: when an entry
// goes while the list is read, those behind it move up, and one of them to a page that
// was read already. So a list of several pages is read again until all is there still
// that there was before, unless found says that the rest does not matter. What has not
// changed is answered from the cache. Read calls see for each entry.
func eachSteadyPage(read func(opts *github.ListOptions, see func(id int64)) (*github.Response, error), found func() bool) error {
	var before map[int64]bool
	for range steadyReads {
		seen, pages := make(map[int64]bool), 0
		opts := &github.ListOptions{PerPage: 100}
		_, err := eachPage(opts, func() (*github.Response, error) {
			pages++
			return read(opts, func(id int64) { seen[id] = true })
		})
		if err != nil || pages == 1 || found() || before != nil && hasAll(seen, before) {
			return err
		}
		before = seen
	}
	return fmt.Errorf("the list changes while it is read: %w", holdfast.ErrUnavailable)
}

func hasAll(set, wanted map[int64]bool) bool {
	for id := range wanted {
		if !set[id] {
			return false
		}
	}
	return true
}
