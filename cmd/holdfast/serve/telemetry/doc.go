// Package telemetry is what monitoring sees of a server: metrics and traces.
//
// It owns the metrics that Prometheus reads, with their names and labels (Metrics):
// counts and durations that the parts of a server add to as things happen, and what is
// counted of clusters, replicas and agents whenever somebody reads them. It owns the
// spans that an OpenTelemetry collector gets (Tracer). Package serve makes both and
// gives them to those parts, which know them by their own interfaces.
//
// It decides nothing, writes no log but that something could not be counted, and has no
// label with the name of a cluster or a person: a label is a word from a fixed list.
package telemetry
