package config

import (
	"fmt"
	"regexp"

	"github.com/holdfast-dev/holdfast/notify"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// Channel is where notifications are sent.
type Channel struct {
	Name         string   `yaml:"name" doc:"A unique name. Sent notifications are recorded under it: under a new name, everything that still holds is sent again."`
	Type         string   `yaml:"type" default:"webhook" doc:"slack (an incoming webhook), teams (a workflow that posts cards) or webhook (JSON)."`
	URL          Secret   `yaml:"url" doc:"The address, which is a secret: anyone who has it can write to the channel."`
	SigningKey   Secret   `yaml:"signingKey" doc:"With type webhook: the key that signs the body, in the header Holdfast-Signature."`
	Events       []string `yaml:"events" doc:"Which of the [events](notifications.md#events) are sent: applied, failed, waiting, drift, destroyed. Left out: all."`
	Projects     []string `yaml:"projects" default:"[\"*\"]" doc:"Globs of the projects whose events are sent."`
	Environments []string `yaml:"environments" default:"[\"*\"]" doc:"Globs of the environments whose events are sent."`
	Template     string   `yaml:"template" doc:"The text of a message, or with type webhook the JSON, as a [template](notifications.md#templates). Do not put secrets in it. Left out: the usual one."`
}

var channelName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (d contradictions) checkNotifications(channels []Channel) {
	names := make(map[string]bool)
	for i, c := range channels {
		at := fmt.Sprintf("notifications[%d]", i)
		switch {
		case !channelName.MatchString(c.Name):
			d.at(at+".name", fmt.Sprintf("%q is not a name for a channel", c.Name), "it has small letters, digits and hyphens, at most 63")
		case names[c.Name]:
			d.at(at+".name", fmt.Sprintf("there is another channel %q", c.Name), "names of channels are unique")
		}
		names[c.Name] = true
		d.oneOf(at+".type", c.Type, words(notify.Types())...)
		if c.URL.IsZero() {
			d.at(at+".url", "is required", "{file: path} or {env: NAME}: it is a secret")
		}
		d.secret(at+".url", c.URL)
		d.secret(at+".signingKey", c.SigningKey)
		if !c.SigningKey.IsZero() && c.Type != string(notify.Webhook) {
			d.at(at+".signingKey", "is only for the type webhook", "the others know their senders by the address")
		}
		for k, event := range c.Events {
			d.oneOf(fmt.Sprintf("%s.events[%d]", at, k), event, words(outgoing.NotificationEvents())...)
		}
		d.globs(at+".projects", c.Projects)
		d.globs(at+".environments", c.Environments)
		if _, err := notify.New(notify.Options{Type: notify.Type(c.Type), Template: c.Template}); err != nil && c.Template != "" {
			d.at(at+".template", err.Error(), "docs/notifications.md has the fields and an example")
		}
	}
}

func words[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
