package githubserver

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ServeGit makes the Git data API (blobs, trees, commits, refs) and what makes
// pull requests work on a bare repository at dir. The refs of pull requests that
// are made through the API are published there, as GitHub does.
func (r *Repo) ServeGit(dir string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.git = dir
}

// AlsoKnownAs makes the API answer for a name that the repository had before.
func (r *Repo) AlsoKnownAs(fullName string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.repos[strings.ToLower(fullName)] = r
}

// DenyContents takes the permission to write Git's data away, or gives it back.
func (r *Repo) DenyContents(denied bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.readOnly = denied
}

func (s *Server) gitRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /repos/{owner}/{repo}/git/ref/{ref...}":     s.getRef,
		"POST /repos/{owner}/{repo}/git/refs":            s.postRef,
		"PATCH /repos/{owner}/{repo}/git/refs/{ref...}":  s.patchRef,
		"DELETE /repos/{owner}/{repo}/git/refs/{ref...}": s.deleteRef,
		"GET /repos/{owner}/{repo}/git/commits/{sha}":    s.getCommit,
		"POST /repos/{owner}/{repo}/git/commits":         s.postCommit,
		"GET /repos/{owner}/{repo}/git/trees/{sha}":      s.getTree,
		"POST /repos/{owner}/{repo}/git/trees":           s.postTree,
		"POST /repos/{owner}/{repo}/git/blobs":           s.postBlob,
	}
}

// run runs git in the repository and returns what it prints, trimmed.
func (r *Repo) run(stdin string, args ...string) (string, error) { return r.runIn(nil, stdin, args...) }

func (r *Repo) runIn(env []string, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = r.git, strings.NewReader(stdin)
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// head returns what a ref is at; empty if it is not there.
func (r *Repo) head(ref string) string {
	sha, err := r.run("", "rev-parse", "--verify", "--quiet", ref)
	if err != nil {
		return ""
	}
	return sha
}

// is reports whether there is an object of that kind.
func (r *Repo) is(kind, sha string) bool {
	got, err := r.run("", "cat-file", "-t", sha)
	return err == nil && got == kind
}

// unprocessable is GitHub's refusal of what it understood.
func unprocessable(message string) (int, any) {
	return http.StatusUnprocessableEntity, map[string]any{
		"message": message, "documentation_url": "https://docs.github.com/rest/git", "status": "422",
	}
}

// data is locked for a repository that has Git; in is what the call says.
func (s *Server) data(w http.ResponseWriter, r *http.Request, in any, f func(repo *Repo) (status int, body any)) {
	s.locked(w, r, func(repo *Repo) (int, any) {
		switch {
		case repo.git == "":
			return 0, nil
		case repo.readOnly && r.Method != http.MethodGet:
			return http.StatusForbidden, map[string]any{
				"message": "Resource not accessible by integration", "documentation_url": "https://docs.github.com/rest/git", "status": "403",
			}
		case in != nil && json.NewDecoder(r.Body).Decode(in) != nil:
			return http.StatusBadRequest, map[string]any{"message": "Problems parsing JSON"}
		}
		return f(repo)
	})
}

func (r *Repo) refShape(ref, sha string) map[string]any {
	api := "https://api.github.com/repos/" + r.fullName + "/git/"
	return map[string]any{
		"ref": ref, "node_id": "REF_kwDO", "url": api + ref,
		"object": map[string]any{"sha": sha, "type": "commit", "url": api + "commits/" + sha},
	}
}

func (s *Server) getRef(w http.ResponseWriter, r *http.Request) {
	s.data(w, r, nil, func(repo *Repo) (int, any) {
		ref := "refs/" + r.PathValue("ref")
		if sha := repo.head(ref); sha != "" {
			return http.StatusOK, repo.refShape(ref, sha)
		}
		return 0, nil
	})
}

func (s *Server) postRef(w http.ResponseWriter, r *http.Request) {
	var in struct{ Ref, SHA string }
	s.data(w, r, &in, func(repo *Repo) (int, any) {
		switch {
		case !strings.HasPrefix(in.Ref, "refs/") || strings.Count(in.Ref, "/") < 2:
			return unprocessable("Reference name must start with 'refs/' and have at least two slashes")
		case !repo.is("commit", in.SHA):
			return unprocessable("Object does not exist")
		case repo.head(in.Ref) != "":
			return unprocessable("Reference already exists")
		}
		if _, err := repo.run("", "update-ref", in.Ref, in.SHA, strings.Repeat("0", 40)); err != nil {
			return unprocessable("Reference could not be created")
		}
		return http.StatusCreated, repo.refShape(in.Ref, in.SHA)
	})
}

func (s *Server) patchRef(w http.ResponseWriter, r *http.Request) {
	var in struct {
		SHA   string
		Force bool
	}
	var moved []int
	s.data(w, r, &in, func(repo *Repo) (int, any) {
		ref := "refs/" + r.PathValue("ref")
		was := repo.head(ref)
		if was == "" {
			return unprocessable("Reference does not exist")
		}
		if !repo.is("commit", in.SHA) {
			return unprocessable("Object does not exist")
		}
		if _, err := repo.run("", "merge-base", "--is-ancestor", was, in.SHA); err != nil && !in.Force {
			return unprocessable("Update is not a fast forward")
		}
		if _, err := repo.run("", "update-ref", ref, in.SHA, was); err != nil {
			return unprocessable("Reference cannot be updated")
		}
		for _, p := range repo.pulls {
			if p.state == "open" && !p.Fork && "refs/heads/"+p.Branch == ref && p.Head != in.SHA {
				p.Head, p.updated = in.SHA, s.stamp()
				p.commits = append(p.commits, in.SHA)
				repo.publish(p)
				moved = append(moved, p.number)
			}
		}
		return http.StatusOK, repo.refShape(ref, in.SHA)
	})
	for _, number := range moved {
		s.repo(r).deliverPull(number, "synchronize", map[string]any{"after": in.SHA})
	}
}

func (s *Server) deleteRef(w http.ResponseWriter, r *http.Request) {
	var closed []int
	s.data(w, r, nil, func(repo *Repo) (int, any) {
		ref := "refs/" + r.PathValue("ref")
		if repo.head(ref) == "" {
			return unprocessable("Reference does not exist")
		}
		if _, err := repo.run("", "update-ref", "-d", ref); err != nil {
			return unprocessable("Reference cannot be deleted")
		}
		for _, p := range repo.pulls {
			if p.state == "open" && !p.Fork && "refs/heads/"+p.Branch == ref {
				p.state, p.closed, p.updated = "closed", s.stamp(), s.stamp()
				closed = append(closed, p.number)
			}
		}
		return http.StatusNoContent, nil
	})
	for _, number := range closed {
		s.repo(r).deliverPull(number, "closed", nil)
	}
}

// publish sets the refs of a pull request, as GitHub does.
func (r *Repo) publish(p *pull) {
	base := r.head("refs/heads/" + p.Base)
	p.BaseSHA = base
	_, _ = r.run("", "update-ref", fmt.Sprintf("refs/pull/%d/head", p.number), p.Head)
	merge := fmt.Sprintf("refs/pull/%d/merge", p.number)
	tree, err := r.run("", "merge-tree", "--write-tree", base, p.Head)
	if err != nil {
		_, _ = r.run("", "update-ref", "-d", merge)
		return
	}
	commit, err := r.runIn(signature("GitHub", "noreply@github.com", r.s.stamp()), "", "commit-tree", tree, "-p", base, "-p", p.Head, "-m", "Merge")
	if err == nil {
		_, _ = r.run("", "update-ref", merge, commit)
	}
}

func signature(name, email string, at time.Time) []string {
	date := fmt.Sprintf("%d +0000", at.Unix())
	return []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email, "GIT_COMMITTER_DATE=" + date,
	}
}

func (r *Repo) commitShape(sha string) (int, any) {
	out, err := r.run("", "log", "-1", "--format=%T%n%P%n%an%n%ae%n%at%n%cn%n%ce%n%ct%n%B", sha)
	lines := strings.SplitN(out, "\n", 9)
	if err != nil || len(lines) < 9 {
		return 0, nil
	}
	api := "https://api.github.com/repos/" + r.fullName + "/git/"
	person := func(at int) map[string]any {
		seconds, _ := strconv.ParseInt(lines[at+2], 10, 64)
		return map[string]any{"name": lines[at], "email": lines[at+1], "date": time.Unix(seconds, 0).UTC().Format(time.RFC3339)}
	}
	parents := []any{}
	for _, parent := range strings.Fields(lines[1]) {
		parents = append(parents, map[string]any{"sha": parent, "url": api + "commits/" + parent, "html_url": "https://github.com/" + r.fullName + "/commit/" + parent})
	}
	return http.StatusOK, map[string]any{
		"sha": sha, "node_id": "C_kwDO", "url": api + "commits/" + sha, "html_url": "https://github.com/" + r.fullName + "/commit/" + sha,
		"author": person(2), "committer": person(5), "message": lines[8], "parents": parents,
		"tree":         map[string]any{"sha": lines[0], "url": api + "trees/" + lines[0]},
		"verification": map[string]any{"verified": lines[5] == "GitHub", "reason": "unsigned", "signature": nil, "payload": nil},
	}
}

func (s *Server) getCommit(w http.ResponseWriter, r *http.Request) {
	s.data(w, r, nil, func(repo *Repo) (int, any) {
		if sha := r.PathValue("sha"); repo.is("commit", sha) {
			return repo.commitShape(sha)
		}
		return 0, nil
	})
}

func (s *Server) postCommit(w http.ResponseWriter, r *http.Request) {
	login := s.caller(r)
	var in struct {
		Message, Tree string
		Parents       []string
		Author        *struct{ Name, Email string }
	}
	s.data(w, r, &in, func(repo *Repo) (int, any) {
		if in.Message == "" || !repo.is("tree", in.Tree) {
			return unprocessable("Tree SHA does not exist")
		}
		args := []string{"commit-tree", in.Tree, "-F", "-"}
		for _, parent := range in.Parents {
			if !repo.is("commit", parent) {
				return unprocessable("Parent SHA does not exist or is not a commit object")
			}
			args = append(args, "-p", parent)
		}
		env := signature(login, login+"@users.noreply.github.com", s.stamp())
		if in.Author != nil {
			env = signature(in.Author.Name, in.Author.Email, s.stamp())
		} else if strings.HasSuffix(login, "[bot]") { // GitHub signs what an App did not say who made
			env = append(env, "GIT_COMMITTER_NAME=GitHub", "GIT_COMMITTER_EMAIL=noreply@github.com")
		}
		sha, err := repo.runIn(env, in.Message, args...)
		if err != nil {
			return unprocessable(err.Error())
		}
		_, body := repo.commitShape(sha)
		return http.StatusCreated, body
	})
}

// maxTree is how many entries a recursive list has; GitHub's is 100,000.
const maxTree = 2000

func (r *Repo) treeShape(sha string, recursive bool) (int, any) {
	args := []string{"ls-tree", "-z", "--full-tree", "-l", sha}
	if recursive {
		args = append(args, "-r", "-t")
	}
	out, err := r.run("", args...)
	if err != nil {
		return 0, nil
	}
	api := "https://api.github.com/repos/" + r.fullName + "/git/"
	entries := []any{}
	lines := strings.Split(strings.Trim(out, "\x00"), "\x00")
	for _, line := range lines[:min(len(lines), maxTree)] {
		meta, path, ok := strings.Cut(line, "\t")
		fields := strings.Fields(meta)
		if !ok || len(fields) != 4 {
			continue
		}
		entry := map[string]any{"path": path, "mode": fields[0], "type": fields[1], "sha": fields[2], "url": api + fields[1] + "s/" + fields[2]}
		if size, err := strconv.Atoi(fields[3]); err == nil {
			entry["size"] = size
		}
		entries = append(entries, entry)
	}
	return http.StatusOK, map[string]any{"sha": sha, "url": api + "trees/" + sha, "tree": entries, "truncated": len(lines) > maxTree}
}

func (s *Server) getTree(w http.ResponseWriter, r *http.Request) {
	s.data(w, r, nil, func(repo *Repo) (int, any) {
		sha := r.PathValue("sha")
		if repo.is("commit", sha) {
			sha = repo.head(sha + "^{tree}")
		}
		if !repo.is("tree", sha) {
			return 0, nil
		}
		return repo.treeShape(sha, r.URL.Query().Get("recursive") != "")
	})
}

type treeEntry struct {
	Path, Mode, Type string
	SHA              *string
	Content          *string
}

func (s *Server) postTree(w http.ResponseWriter, r *http.Request) {
	var in struct {
		BaseTree string `json:"base_tree"`
		Tree     []treeEntry
	}
	s.data(w, r, &in, func(repo *Repo) (int, any) {
		if in.BaseTree != "" && repo.head(in.BaseTree+"^{tree}") == "" {
			return unprocessable("base_tree is not a valid tree oid")
		}
		sha, refused := repo.writeTree(in.BaseTree, in.Tree)
		if refused != "" {
			return unprocessable(refused)
		}
		_, body := repo.treeShape(sha, false)
		return http.StatusCreated, body
	})
}

// writeTree writes a tree through its own index.
func (r *Repo) writeTree(base string, entries []treeEntry) (sha, refused string) {
	dir, err := os.MkdirTemp("", "githubserver")
	if err != nil {
		return "", err.Error()
	}
	defer os.RemoveAll(dir)
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	blobs, err := r.writeBlobs(filepath.Join(dir, "marks"), entries)
	if err != nil {
		return "", err.Error()
	}
	var lines strings.Builder
	for i, e := range entries {
		if e.Path == "" || strings.HasPrefix(e.Path, "/") || slices.Contains(strings.Split(e.Path, "/"), "..") {
			return "", "tree.path contains a malformed path component"
		}
		if !slices.Contains([]string{"100644", "100755", "040000", "160000", "120000"}, e.Mode) {
			return "", "tree.mode is not a valid mode"
		}
		blob := blobs[i]
		switch {
		case e.SHA != nil && e.Content != nil:
			return "", "Must supply either tree.sha or tree.content, not both"
		case e.Content != nil:
		case e.SHA == nil:
			fmt.Fprintf(&lines, "0 %040d\t%s\x00", 0, e.Path)
			continue
		case e.SHA != nil && r.is("blob", *e.SHA):
			blob = *e.SHA
		default:
			return "", "tree.sha " + fmt.Sprint(e.SHA) + " is not a valid blob"
		}
		fmt.Fprintf(&lines, "%s %s\t%s\x00", e.Mode, blob, e.Path)
	}
	if base != "" {
		if _, err := r.runIn(env, "", "read-tree", base); err != nil {
			return "", err.Error()
		}
	}
	if _, err := r.runIn(env, lines.String(), "update-index", "--add", "-z", "--index-info"); err != nil {
		return "", err.Error()
	}
	if sha, err = r.runIn(env, "", "write-tree"); err != nil {
		return "", err.Error()
	}
	return sha, ""
}

// writeBlobs writes the contents of entries, all at once, and returns their ids by
// the entries' places.
func (r *Repo) writeBlobs(marks string, entries []treeEntry) (map[int]string, error) {
	var in strings.Builder
	for i, e := range entries {
		if e.Content != nil {
			fmt.Fprintf(&in, "blob\nmark :%d\ndata %d\n%s\n", i+1, len(*e.Content), *e.Content)
		}
	}
	if in.Len() == 0 {
		return nil, nil
	}
	if _, err := r.run(in.String(), "fast-import", "--quiet", "--export-marks="+marks); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(marks)
	if err != nil {
		return nil, err
	}
	blobs := make(map[int]string)
	for line := range strings.Lines(string(data)) {
		var mark int
		var sha string
		if _, err := fmt.Sscanf(line, ":%d %s", &mark, &sha); err != nil {
			return nil, err
		}
		blobs[mark-1] = sha
	}
	return blobs, nil
}

func (s *Server) postBlob(w http.ResponseWriter, r *http.Request) {
	var in struct{ Content, Encoding string }
	s.data(w, r, &in, func(repo *Repo) (int, any) {
		content := in.Content
		switch cmp.Or(in.Encoding, "utf-8") {
		case "utf-8":
		case "base64":
			raw, err := base64.StdEncoding.DecodeString(content)
			if err != nil {
				return unprocessable("content is not valid Base64")
			}
			content = string(raw)
		default:
			return unprocessable("encoding must be one of [utf-8, base64]")
		}
		sha, err := repo.run(content, "hash-object", "-w", "--stdin")
		if err != nil {
			return unprocessable(err.Error())
		}
		return http.StatusCreated, map[string]any{"sha": sha, "url": "https://api.github.com/repos/" + repo.fullName + "/git/blobs/" + sha}
	})
}
