package serve

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/serve/telemetry"
	"github.com/holdfast-dev/holdfast/notify"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/reconciler"
	notifying "github.com/holdfast-dev/holdfast/reconciler/notify"
	"github.com/holdfast-dev/holdfast/server"
)

// signals is what a server sends elsewhere: its metrics, traces and messages.
type signals struct {
	metrics  *telemetry.Metrics
	tracer   *telemetry.Tracer   // nil: nothing is traced
	notifier *notifying.Notifier // nil: there are no channels
}

// openNotifier makes the notifier of channels; nil without channels.
func openNotifier(s *services, opts *reconciler.Options) error {
	if len(s.cfg.Notifications) == 0 {
		return nil
	}
	if wrong := templateSecrets(s.cfg); len(wrong) > 0 {
		return hint.New(wrong[0], "templates are not kept secret: leave the value out")
	}
	o := notifying.Options{Store: s.store, Logger: s.logger, Now: s.clock.Now}
	if site := strings.TrimRight(s.cfg.Server.API.URL, "/"); site != "" {
		o.RunURL = func(run string) string { return site + server.RunPage(run) }
	}
	for _, c := range s.cfg.Notifications {
		sender := notify.Options{Type: notify.Type(c.Type), URL: c.URL.Value, Template: c.Template}
		if !c.SigningKey.IsZero() {
			sender.SigningKey = c.SigningKey.Value
		}
		channel, err := notify.New(sender)
		if err != nil {
			return fmt.Errorf("channel %q: %w", c.Name, err)
		}
		events := make([]outgoing.NotificationEvent, len(c.Events))
		for i, event := range c.Events {
			events[i] = outgoing.NotificationEvent(event)
		}
		o.Channels = append(o.Channels, notifying.Channel{
			Name: c.Name, Events: events, Sender: channel,
			Wants: func(project, environment string) bool {
				return matches(c.Projects, project) && matches(c.Environments, environment)
			},
		})
	}
	s.notifier = notifying.New(o)
	opts.Reports.Decided = s.notifier.Decided
	return nil
}

// leastSecret is the length from which a secret is looked for in templates.
const leastSecret = 8

// templateSecrets finds the templates of channels that have the value of a secret in them:
// they are in a file that many read, and their text is sent.
func templateSecrets(cfg *config.Config) (wrong []error) {
	eachSetting(reflect.ValueOf(cfg).Elem(), "", "", func(at, _ string, v reflect.Value) {
		secret, ok := v.Interface().(config.Secret)
		if !ok || secret.IsZero() {
			return
		}
		value, err := secret.Value()
		if err != nil || len(value) < leastSecret {
			return
		}
		for i, c := range cfg.Notifications {
			if strings.Contains(c.Template, value) {
				wrong = append(wrong, fmt.Errorf("notifications[%d].template contains the value of the secret %s", i, at))
			}
		}
	})
	return wrong
}

// silentChannels are the channels that cannot be reached. Everybody may read it: there is
// no address in it, and nothing of an answer.
func silentChannels(problems []outgoing.ChannelProblem) (out []string) {
	for _, p := range problems {
		out = append(out, fmt.Sprintf("notifications to the channel %s are not accepted since %s, and %d wait: see the server's log",
			p.Channel, p.Since.UTC().Format("2006-01-02 15:04 UTC"), p.Waiting))
	}
	return out
}
