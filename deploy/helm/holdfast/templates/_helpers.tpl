{{/* Names and labels. */}}
{{- define "holdfast.name" -}}
{{- .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "holdfast.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.selector" -}}
app.kubernetes.io/name: {{ include "holdfast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "holdfast.labels" -}}
app.kubernetes.io/name: {{ include "holdfast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "holdfast.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "holdfast.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is required unless serviceAccount.create is true" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.jobNamespace" -}}
{{- .Values.jobs.namespace | default (printf "%s-jobs" .Release.Name) -}}
{{- end -}}

{{- define "holdfast.launchAgent" -}}
{{- printf "%s-launch" (include "holdfast.fullname" .) -}}
{{- end -}}

{{- define "holdfast.agentSelector" -}}
app.kubernetes.io/name: {{ include "holdfast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: launch-agent
{{- end -}}

{{/* The port of the server that a launch agent connects to. */}}
{{- define "holdfast.launchPort" -}}
{{- $host := (urlParse .Values.launchAgent.server).host -}}
{{- regexFind ":[0-9]+$" $host | trimPrefix ":" | default "443" -}}
{{- end -}}

{{- define "holdfast.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/*
holdfast.yaml: what follows from the other values, and config over it. A key of which the chart
decides must not be in config with another value: half of the chart would not know of it.
Helm reads a key that is written off as false.
*/}}
{{- define "holdfast.config" -}}
{{- $server := dict
      "public" (dict "address" ":8080")
      "api" (dict "address" ":8081")
      "grace" "30s" -}}
{{- if .Values.agents.enabled -}}
{{- $agents := dict "address" ":8082" "tls" (dict "certFile" "/etc/holdfast/agents-tls/tls.crt" "keyFile" "/etc/holdfast/agents-tls/tls.key") -}}
{{- if .Values.jobs.enabled -}}
{{- $_ := set $agents "url" (printf "https://%s.%s.svc:%d" (include "holdfast.fullname" .) .Release.Namespace (int .Values.service.ports.agents)) -}}
{{- end -}}
{{- with .Values.agents.tls.caKey -}}
{{- $_ := set $agents "caFile" (printf "/etc/holdfast/agents-tls/%s" .) -}}
{{- end -}}
{{- $_ := set $server "agents" $agents -}}
{{- end -}}
{{- $base := dict
      "dataDir" "/var/lib/holdfast"
      "encryption" (dict "keyFile" (printf "/etc/holdfast/encryption/%s" .Values.encryption.key))
      "agent" (dict "off" true)
      "jobs" (dict "image" (include "holdfast.image" .))
      "server" $server
      "telemetry" (dict "logFormat" "json") -}}
{{- $config := deepCopy .Values.config -}}
{{- $given := dict
      "dataDir" (dig "dataDir" "" $config)
      "encryption.keyFile" (dig "encryption" "keyFile" "" $config)
      "agent.off" (or (dig "agent" "off" "" $config) (dig "agent" "false" "" $config))
      "server.public.address" (dig "server" "public" "address" "" $config)
      "server.api.address" (dig "server" "api" "address" "" $config)
      "server.agents.address" (dig "server" "agents" "address" "" $config)
      "server.agents.tls" (dig "server" "agents" "tls" "" $config) -}}
{{- range $key, $value := $given -}}
{{- if $value -}}
{{- fail (printf "config.%s is set by the chart: remove it from config" $key) -}}
{{- end -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite $base $config) -}}
{{- end -}}

{{/* What several replicas need, and what a Service needs that people reach. */}}
{{- define "holdfast.check" -}}
{{- if .Values.launchAgent.enabled -}}
{{- range $key := list "server" "id" "secretName" -}}
{{- if not (index $.Values.launchAgent $key) -}}
{{- fail (printf "launchAgent.%s is required: see values.yaml" $key) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.jobs.enabled -}}
{{- fail "launchAgent.enabled needs jobs.enabled: the namespace of the Jobs, with their accounts" -}}
{{- end -}}
{{- else if not .Values.server.enabled -}}
{{- fail "nothing would be installed: set server.enabled or launchAgent.enabled" -}}
{{- end -}}
{{- if .Values.server.enabled -}}
{{- include "holdfast.checkServer" . -}}
{{- end -}}
{{- if and .Values.jobs.enabled (eq .Values.jobs.planServiceAccount.name .Values.jobs.applyServiceAccount.name) -}}
{{- fail "jobs.planServiceAccount and jobs.applyServiceAccount have one name: a plan would have the rights of an apply" -}}
{{- end -}}
{{- if and .Values.jobs.enabled (eq (include "holdfast.jobNamespace" .) .Release.Namespace) -}}
{{- fail "jobs.namespace is that of the server or the launch agent: who may create Jobs there may use all its Secrets" -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.checkServer" -}}
{{- $config := .Values.config -}}
{{- if not .Values.encryption.secretName -}}
{{- fail "encryption.secretName is required: a Secret with 32 random bytes under the key `key`, which all replicas share" -}}
{{- end -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if not (dig "datastore" "url" "" $config) -}}
{{- fail "several replicas need PostgreSQL: set config.datastore.url, or replicas to 1" -}}
{{- end -}}
{{- if not (dig "datastore" "blobs" "url" "" $config) -}}
{{- fail "several replicas need an object store: set config.datastore.blobs.url, or replicas to 1" -}}
{{- end -}}
{{- if ne (dig "lock" "type" "" $config) "redis" -}}
{{- fail "several replicas need Redis: set config.lock, or replicas to 1" -}}
{{- end -}}
{{- if not (dig "server" "api" "tokens" (list) $config) -}}
{{- fail "several replicas need the same tokens: set config.server.api.tokens" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.agents.enabled (not .Values.agents.tls.secretName) -}}
{{- fail "agents.tls.secretName is required: agents and Jobs speak to the server by TLS only. Without any, set agents.enabled to false" -}}
{{- end -}}
{{- if and .Values.jobs.enabled (not .Values.agents.enabled) -}}
{{- fail "jobs.enabled needs agents.enabled: Jobs reach the server by the listener of agents" -}}
{{- end -}}
{{- end -}}
