package cloudapi

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// Authenticator is the webhook by which an API server asks who a token is. Who may be changed
// while the server runs.
type Authenticator struct {
	who atomic.Pointer[func(r *http.Request, token string) (string, error)]
}

// Ask has tokens looked at by a function that returns the name of their user.
func (a *Authenticator) Ask(who func(r *http.Request, token string) (string, error)) {
	a.who.Store(&who)
}

func (a *Authenticator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			Token string `json:"token"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status := map[string]any{"authenticated": false}
	if who := a.who.Load(); who != nil {
		if user, err := (*who)(r, review.Spec.Token); err != nil {
			status["error"] = err.Error()
		} else {
			status = map[string]any{"authenticated": true, "user": map[string]any{"username": user}}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(mustJSON(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "status": status}))
}
