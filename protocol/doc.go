// Package protocol is what the server and agents say to each other: JSON over HTTP, in the
// version that Version says.
//
//	POST /agent/v1/claims                                 ClaimRequest → 200 Assignment | 204 nothing to do | 409 its id is taken
//	POST /agent/v1/presence                               ClaimRequest → 204 | 409 its id is taken: alive, and wants no run now
//	POST /agent/v1/tickets                                TicketRequest → 200 Assignment | 401, 403 the ticket is not valid
//	POST /agent/v1/runs/{run}/attempts/{n}/heartbeat      Heartbeat → 200 HeartbeatReply | 409 fenced off
//	POST /agent/v1/runs/{run}/attempts/{n}/logs?offset=N  bytes → 200 {"next": offset} | 409 fenced off
//	POST /agent/v1/runs/{run}/attempts/{n}/logs/mask      LogMask → 204 | 409 fenced off
//	PUT  /agent/v1/runs/{run}/attempts/{n}/artefacts/{a}  bytes → 204 | 409 fenced off
//	POST /agent/v1/runs/{run}/attempts/{n}/tokens         TokenRequest → 200 IdentityToken | 403 not for that audience | 409 fenced off
//	POST /agent/v1/runs/{run}/attempts/{n}/result         Result → 204 | 409 fenced off
//	GET  /agent/v1/runs/{run}/artefacts/{a}               bytes of a run of the same cluster
//	GET  /agent/v1/bundles/{digest}                       tar, gzip
//	*    /agent/v1/state/{location}                       GET POST LOCK UNLOCK, as the engines' http backend speaks
//
// Claims and presence carry the agent's token, tickets the ticket, all else the run's
// (Assignment.Token), all as "Authorization: Bearer". Errors are {"error": text}: 401 unknown token,
// 403 not this run's, 404 no such thing, 409 fenced off, 503 try again.
//
// Launchers, which start agents for single runs, have messages of their own (launch.go).
// Package server answers all of these, runner/uplink sends them, reconciler/dispatch and
// reconciler/launch say what is in them. The package starts nothing and opens no
// connection; it knows the vocabulary and the documents of runners, and nobody else.
package protocol
