package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server/issuer"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

// openIssuer makes the server an issuer of tokens, if configured.
func (s *services) openIssuer(ctx context.Context) error {
	c := s.cfg.Server.Issuer
	if c.URL == "" {
		return nil
	}
	var err error
	s.issuer, err = issuer.New(ctx, issuer.Options{
		URL: c.URL, Replaces: c.Replaces, Store: s.store, Runs: issuedRuns{s.cfg},
		Times:  issuer.Times{Token: c.Lifetime, Rotate: c.Rotate, Announce: c.Announce},
		Issued: recordTokens(s), Refused: s.metrics.TokenRefused,
		Logger: s.logger,
	})
	var moved *issuer.MovedError
	if errors.As(err, &moved) {
		return hint.New(err, fmt.Sprintf("write %s again; or have every cloud trust %s first, and then set server.issuer.replaces: %s",
			moved.Recorded, moved.Configured, moved.Recorded))
	}
	return err
}

// recordTokens counts tokens and puts them on record, without what is secret of them.
func recordTokens(s *services) func(ctx context.Context, token issuer.Issued) {
	return func(ctx context.Context, token issuer.Issued) {
		s.metrics.TokenIssued(token.Kind, token.Phase)
		actor, object := fmt.Sprintf("run %s, attempt %d", token.Run, token.Attempt), "cluster "+token.Cluster
		if token.Phase == claims.PhaseRunner {
			actor, object = "server", "runner "+token.Runner
		}
		err := s.store.Audit(ctx, holdfast.AuditEntry{
			At: s.clock.Now(), Actor: actor, Action: "token.issue", Object: object,
			Detail: fmt.Sprintf("%s for %s, until %s (%s)", token.Subject, token.Audience, time.Unix(token.Expires, 0).UTC().Format(time.RFC3339), token.ID),
		})
		if err != nil {
			s.logger.ErrorContext(ctx, "token was not recorded", "subject", token.Subject, "err", err)
		}
	}
}

// issuedRuns say what runs may have tokens for, and where they come from.
type issuedRuns struct{ cfg *config.Config }

// Identities are those of the entries that match.
func (r issuedRuns) Identities(c holdfast.Cluster, kind holdfast.RunKind) (protocol.Identities, error) {
	return identities(r.cfg, c, kind), nil
}

// Origin is the repository as its code host calls it, and the branch or pull request.
func (r issuedRuns) Origin(run holdfast.Run) claims.Origin {
	origin := branchOrigin(r.cfg, run.Repo)
	origin.Runner = cmp.Or(run.Runner, holdfast.LocalRunner)
	if !run.PullRequest.IsZero() {
		origin.Ref = fmt.Sprintf("refs/pull/%d", run.PullRequest.Number)
	}
	return origin
}

// branchOrigin is a repository as its code host calls it, and its tracked branch.
func branchOrigin(cfg *config.Config, name string) claims.Origin {
	origin := claims.Origin{Repository: name}
	for _, repo := range cfg.Repositories {
		if repo.Name != name {
			continue
		}
		if repo.Forge != "local" {
			origin.Repository = repo.FullName()
		}
		origin.Ref = "refs/heads/" + repo.Branch
	}
	return origin
}

// identities are the identities that runs of a kind of a cluster can prove: one of each kind,
// from the last entry that matches.
func identities(cfg *config.Config, c holdfast.Cluster, kind holdfast.RunKind) protocol.Identities {
	var out protocol.Identities
	for _, entry := range boundTo(cfg, c, kind) {
		if a := entry.AWS; a != (config.AWS{}) {
			name := fmt.Sprintf("holdfast-%s-%s-%s", c.Project, c.Environment, claims.PhaseOf(kind))
			out.AWS = &protocol.AWSIdentity{
				RoleARN: a.RoleARN, SessionName: cmp.Or(a.SessionName, name[:min(len(name), 64)]), Region: a.Region,
				SessionTags: a.SessionTags, Audience: cmp.Or(a.Audience, "sts.amazonaws.com"),
			}
		}
		if g := entry.GCP; g != (config.GCP{}) {
			out.GCP = &protocol.GCPIdentity{
				Provider: g.Provider, ServiceAccount: g.ServiceAccount,
				Audience: cmp.Or(g.Audience, "https://iam.googleapis.com/"+g.Provider),
			}
		}
		if a := entry.Azure; a != (config.Azure{}) {
			out.Azure = &protocol.AzureIdentity{
				TenantID: a.TenantID, ClientID: a.ClientID, SubscriptionID: a.SubscriptionID,
				Audience: cmp.Or(a.Audience, "api://AzureADTokenExchange"),
			}
		}
		if v := entry.Vault; v != (config.Vault{}) {
			address := strings.TrimRight(v.Address, "/")
			out.Vault = &protocol.VaultIdentity{
				Address: address, Role: v.Role, Mount: cmp.Or(strings.Trim(v.Mount, "/"), "jwt"), Namespace: strings.Trim(v.Namespace, "/"),
				Audience: cmp.Or(v.Audience, address),
			}
		}
	}
	return out
}

// checkIdentities returns why a run must not start with its identities: variables that other
// entries give it would be used instead, or Google would not accept its subject.
func checkIdentities(of protocol.Identities, env map[string]string, c holdfast.Cluster, kind holdfast.RunKind) error {
	for _, identity := range []struct {
		kind string
		is   bool
	}{{"aws", of.AWS != nil}, {"gcp", of.GCP != nil}, {"azure", of.Azure != nil}, {"vault", of.Vault != nil}} {
		if !identity.is {
			continue
		}
		for _, name := range config.KeylessVariables(identity.kind) {
			if _, both := env[name]; both {
				return fmt.Errorf("credentials in holdfast.yaml give this run both %s and the variable %s, which the engine would use instead: keep one",
					identity.kind, name)
			}
		}
	}
	subject := claims.Subject(c.Project, c.Environment, claims.PhaseOf(kind))
	if of.GCP != nil && len(subject) > claims.MaxGoogleSubject {
		return fmt.Errorf("the subject %s has %d bytes, and Google takes %d: the names of project and environment must be shorter",
			subject, len(subject), claims.MaxGoogleSubject)
	}
	return nil
}

// DescribeIssuer writes what has to be registered where tokens are to be trusted.
func DescribeIssuer(w io.Writer, cfg *config.Config) {
	url := cfg.Server.Issuer.URL
	if url == "" {
		return
	}
	fmt.Fprintf(w, "issuer: %s (clouds fetch %s/.well-known/openid-configuration)\n", url, url)
	if cfg.Server.Agents.URL != "" {
		fmt.Fprint(w, describeRunnerTokens())
	}
	for i, entry := range cfg.Credentials {
		var phases []string
		for _, phase := range []string{claims.PhasePlan, claims.PhaseApply} {
			if entry.Phase == "" || entry.Phase == phase {
				phases = append(phases, phase)
			}
		}
		kinds := []holdfast.RunKind{holdfast.RunPlan}
		if !slices.Contains(phases, claims.PhasePlan) {
			kinds[0] = holdfast.RunApply
		}
		one := *cfg
		one.Credentials = []config.Credential{entry}
		one.Credentials[0].Project, one.Credentials[0].Environment = "*", "*"
		of := identities(&one, holdfast.Cluster{}, kinds[0])
		for _, kind := range []string{"aws", "gcp", "azure", "vault"} {
			audience, is := of.Audiences()[kind]
			if !is {
				continue
			}
			fmt.Fprintf(w, "credentials[%d].%s: audience %s", i, kind, audience)
			for n, phase := range phases {
				fmt.Fprintf(w, "%sholdfast:%s:%s:%s", [2]string{", subject ", " or "}[min(n, 1)], entry.Project, entry.Environment, phase)
			}
			fmt.Fprintln(w)
		}
	}
}
