package telemetry

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast"
)

// Tracer sends the reconciler's spans to an OpenTelemetry collector.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// OpenTracer exports spans to endpoint, over HTTP.
func OpenTracer(ctx context.Context, endpoint string) (*Tracer, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("parse trace endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.JoinPath("v1/traces").String()))
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "holdfast"))),
	)
	return &Tracer{provider, provider.Tracer("github.com/holdfast-dev/holdfast")}, nil
}

// Close sends what is left.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Span sends a span that has ended, and returns what its children have as their parent.
func (t *Tracer) Span(parent, name string, start, end time.Time, attributes map[string]string, err error) string {
	carrier := propagation.MapCarrier{"traceparent": parent}
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier)
	ctx, span := t.tracer.Start(ctx, name, trace.WithTimestamp(start))
	for key, value := range attributes {
		span.SetAttributes(attribute.String("holdfast."+key, value))
	}
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(end))
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// Delivered makes a delivery the beginning of a trace, or a part of its
// sender's.
func (t *Tracer) Delivered(req holdfast.SourceRequest) holdfast.SourceRequest {
	now := time.Now()
	req.TraceParent = t.Span(req.TraceParent, "delivery", now, now, map[string]string{"repo": req.Repo}, nil)
	return req
}
