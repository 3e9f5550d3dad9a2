package githubserver

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed payloads/*.json
var payloads embed.FS

var numberInURL = regexp.MustCompile(`/(pulls?|issues)/[12]\b`)

// recorded returns a recorded delivery with the repository's name and, unless
// it is zero, a pull request's number in place of the recorded ones.
func (r *Repo) recorded(event string, number int) map[string]any {
	payload := r.recordedPart(event, "", number)
	payload["repository"] = r.shape()
	return payload
}

// recordedPart is one object of recorded, or with an empty key all but the repository.
func (r *Repo) recordedPart(event, key string, number int) map[string]any {
	r.templatesMu.Lock()
	defer r.templatesMu.Unlock()
	var part any = r.template(event)
	if key != "" {
		part = r.template(event)[key]
	}
	return copyOf(part, number).(map[string]any)
}

// copyOf copies what JSON was decoded to, with all that is in it, and with a number in
// the URLs of pull requests and issues unless it is zero. To decode it anew for each
// answer would cost more than all else that a test does here.
func copyOf(value any, number int) any {
	switch value := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, field := range value {
			object[key] = copyOf(field, number)
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = copyOf(element, number)
		}
		return list
	case string:
		if number != 0 && (strings.Contains(value, "/pull") || strings.Contains(value, "/issues/")) {
			return numberInURL.ReplaceAllString(value, "/${1}/"+strconv.Itoa(number))
		}
		return value
	default:
		return value
	}
}

// template returns a recorded delivery with the repository's name in place of
// the recorded ones, without the copies of the repository in it. It is shared: nobody
// may change it. Its mutex is held.
func (r *Repo) template(event string) map[string]any {
	if payload, ok := r.templates[event]; ok {
		return payload
	}
	raw, err := payloads.ReadFile("payloads/" + event + ".json")
	if err != nil {
		panic(err) // embedded: there or not, at build time
	}
	owner, name, _ := strings.Cut(r.fullName, "/")
	payload := parse(strings.NewReplacer(
		"Codertocat/Hello-World", r.fullName, "Octocoders/Hello-World", r.fullName,
		`"Codertocat"`, strconv.Quote(owner), `"Octocoders"`, strconv.Quote(owner), `"Hello-World"`, strconv.Quote(name),
	).Replace(string(raw)))
	if event == "pull_request" {
		r.repository = payload["repository"].(map[string]any)
		r.repository["id"], r.repository["default_branch"] = r.id, r.defaultBranch
	}
	delete(payload, "repository")
	if pull, ok := payload["pull_request"].(map[string]any); ok {
		delete(pull["head"].(map[string]any), "repo")
		delete(pull["base"].(map[string]any), "repo")
	}
	r.templates[event] = payload
	return payload
}

// parse panics if text, which is ours, is not a JSON object.
func parse(text string) (object map[string]any) {
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(err)
	}
	return object
}

func stampOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

func userShape(login string) map[string]any {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	id := 0
	for _, c := range login {
		id = id*31%1_000_003 + int(c)
	}
	return map[string]any{
		"login": login, "id": id, "node_id": fmt.Sprintf("U_%d", id), "type": kind, "site_admin": false,
		"url": "https://api.github.com/users/" + login, "html_url": "https://github.com/" + login,
	}
}

// shape is the repository, as all answers and deliveries have it. It is shared:
// nobody may change it.
func (r *Repo) shape() map[string]any {
	r.templatesMu.Lock()
	defer r.templatesMu.Unlock()
	r.template("pull_request")
	return r.repository
}

// pullShape is a pull request as GET /pulls/{number} and deliveries show it.
func (r *Repo) pullShape(p *pull) map[string]any {
	shape := r.recordedPart("pull_request", "pull_request", p.number)
	repo := r.shape()
	owner, _, _ := strings.Cut(r.fullName, "/")
	maps.Copy(shape, map[string]any{
		"id": p.id, "number": p.number, "state": p.state, "title": p.Title, "user": userShape(p.Author),
		"draft": p.Draft, "merged": p.merged, "mergeable": p.mergeable, "mergeable_state": p.mergeableState,
		"created_at": stampOf(p.created), "updated_at": stampOf(p.updated), "closed_at": stampOf(p.closed),
		"merged_at": nil, "merge_commit_sha": nil,
	})
	shape["labels"] = r.labelShapes(p.Labels)
	if p.Body != "" {
		shape["body"] = p.Body
	}
	if p.merged {
		maps.Copy(shape, map[string]any{"merged_at": stampOf(p.closed), "merge_commit_sha": p.mergeCommit, "mergeable": nil, "mergeable_state": "unknown"})
	} else if p.state == "open" && p.Head != "" {
		// Of an open pull request it is the test merge.
		shape["merge_commit_sha"] = strings.Repeat("e", 40)
	}
	head, base := shape["head"].(map[string]any), shape["base"].(map[string]any)
	maps.Copy(base, map[string]any{"ref": p.Base, "sha": p.BaseSHA, "label": owner + ":" + p.Base, "repo": repo})
	maps.Copy(head, map[string]any{"ref": p.Branch, "sha": p.Head, "label": owner + ":" + p.Branch, "repo": repo})
	if p.Fork {
		fork := maps.Clone(repo)
		maps.Copy(fork, map[string]any{"id": r.id + 1_000_000, "full_name": p.Author + "/fork", "fork": true, "owner": userShape(p.Author)})
		maps.Copy(head, map[string]any{"label": p.Author + ":" + p.Branch, "repo": fork, "user": userShape(p.Author)})
	}
	return shape
}

// listShape shows pull requests as lists do: without what GitHub has to
// compute for each.
func (r *Repo) listShape(pulls []*pull) []any {
	shapes := make([]any, len(pulls))
	for i, p := range pulls {
		shape := r.pullShape(p)
		for _, key := range []string{
			"merged", "mergeable", "mergeable_state", "rebaseable", "merged_by", "comments", "review_comments",
			"commits", "additions", "deletions", "changed_files", "maintainer_can_modify",
		} {
			delete(shape, key)
		}
		shapes[i] = shape
	}
	return shapes
}

func (r *Repo) commentShape(c Comment) map[string]any {
	shape := r.recordedPart("issue_comment", "comment", c.Number)
	kind := "pull"
	if c.Issue {
		kind = "issues"
	}
	maps.Copy(shape, map[string]any{
		"id": c.ID, "node_id": nodeID(c.ID), "body": c.Body, "user": userShape(c.Author),
		"created_at": stampOf(c.CreatedAt), "updated_at": stampOf(c.UpdatedAt),
		"url":      fmt.Sprintf("https://api.github.com/repos/%s/issues/comments/%d", r.fullName, c.ID),
		"html_url": fmt.Sprintf("https://github.com/%s/%s/%d#issuecomment-%d", r.fullName, kind, c.Number, c.ID),
	})
	return shape
}

func (r *Repo) reviewShape(p *pull, v review) map[string]any {
	shape := r.recordedPart("pull_request_review", "review", p.number)
	maps.Copy(shape, map[string]any{
		"id": v.id, "user": userShape(v.login), "state": v.state, "commit_id": v.head, "submitted_at": stampOf(v.at),
	})
	return shape
}

func statusShape(s Status) map[string]any {
	return map[string]any{
		"id": s.ID, "context": s.Context, "state": s.State, "description": s.Description, "target_url": s.TargetURL,
		"creator": userShape(s.Creator), "created_at": stampOf(s.CreatedAt), "updated_at": stampOf(s.CreatedAt),
	}
}
