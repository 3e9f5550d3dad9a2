// Package notify decides of which events of clusters channels are notified, once each: that
// something was applied or destroyed, has failed, waits for somebody, or has drifted.
//
// A Notifier owns the outbox of notifications: it looks at the record of a cluster after
// each decision, writes down what is new for the channels that want it, and sends what
// waits, each channel at its own pace. What a notification is about has an identity, such
// as a run, so that replicas, restarts and repeated decisions notify nobody twice.
//
// The reconciler's decisions and the server's start call it. It never decides anything
// about a cluster, writes no record but those of the outbox, and does not know what a
// message looks like: package notify of the layer below does.
package notify
