{{- define "quipu.name" -}}
{{- printf "%s-quipu" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "quipu.labels" -}}
app.kubernetes.io/name: quipu
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Labels that select pods: never changed, as a StatefulSet's selector cannot change. Takes (list $ "coordinator"). */}}
{{- define "quipu.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: quipu
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "quipu.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "quipu.scheme" -}}
{{ if .Values.tls.secretName }}https{{ else }}http{{ end }}
{{- end -}}

{{- define "quipu.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "quipu.name" .) "default" .Values.serviceAccount.create) }}
{{- end -}}

{{/* Domain of the pods of a StatefulSet. Takes (list $ "coordinator"). */}}
{{- define "quipu.domain" -}}
{{- $root := index . 0 -}}
{{ include "quipu.name" $root }}-{{ index . 1 }}.{{ $root.Release.Namespace }}.svc.{{ $root.Values.clusterDomain }}
{{- end -}}

{{/* Addresses of all coordinators, by commas. */}}
{{- define "quipu.coordinators" -}}
{{- $root := . -}}
{{- $addresses := list -}}
{{- range $number := until (int .Values.coordinator.replicas) -}}
{{- $addresses = append $addresses (printf "%s://%s-coordinator-%d.%s:8080" (include "quipu.scheme" $root) (include "quipu.name" $root) $number (include "quipu.domain" (list $root "coordinator"))) -}}
{{- end -}}
{{ join "," $addresses }}
{{- end -}}

{{- define "quipu.publicHosts" -}}
{{- $name := include "quipu.name" . -}}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.%s" $name .Release.Namespace .Values.clusterDomain) -}}
{{- if .Values.ingress.host -}}{{- $hosts = append $hosts .Values.ingress.host -}}{{- end -}}
{{ join "," (concat $hosts .Values.publicHosts) }}
{{- end -}}

{{/* Environment of coordinators and workers. */}}
{{- define "quipu.environment" -}}
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: QUIPU_CONFIG
  value: /etc/quipu/config/config.json
- name: QUIPU_CATALOG_DIR
  value: /etc/quipu/catalog
- name: QUIPU_TABLES_DIR
  value: /var/lib/quipu-tables
- name: QUIPU_ENVIRONMENT
  value: {{ .Values.environment | quote }}
- name: QUIPU_PUBLIC_HOSTS
  value: {{ include "quipu.publicHosts" . | quote }}
- name: QUIPU_INSECURE
  value: {{ .Values.insecure | quote }}
- name: QUIPU_SHARED_SECRET
  valueFrom: { secretKeyRef: { name: {{ required "secrets.shared.name: name the Secret with the cluster's shared secret" .Values.secrets.shared.name }}, key: {{ .Values.secrets.shared.key }} } }
{{- with .Values.secrets.metricsToken }}
{{- if .name }}
- name: QUIPU_METRICS_TOKEN
  valueFrom: { secretKeyRef: { name: {{ .name }}, key: {{ .key }} } }
{{- end }}
{{- end }}
{{- if .Values.tls.secretName }}
- name: QUIPU_TLS_CERT
  value: /etc/quipu/tls/tls.crt
- name: QUIPU_TLS_KEY
  value: /etc/quipu/tls/tls.key
{{- if .Values.tls.privateAuthority }}
- name: QUIPU_TLS_CA_FILE
  value: /etc/quipu/tls/ca.crt
{{- end }}
{{- end }}
{{- if .Values.telemetry.otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .Values.telemetry.otlpEndpoint | quote }}
{{- end }}
{{- end -}}

{{/* Mounts of coordinators and workers. */}}
{{- define "quipu.mounts" -}}
- { name: data, mountPath: /var/lib/quipu }
- { name: tables, mountPath: /var/lib/quipu-tables }
- { name: config, mountPath: /etc/quipu/config, readOnly: true }
- { name: catalog, mountPath: /etc/quipu/catalog, readOnly: true }
- { name: files, mountPath: /etc/quipu/files, readOnly: true }
- { name: shm, mountPath: /dev/shm }
- { name: tmp, mountPath: /tmp }
{{- if .Values.tls.secretName }}
- { name: tls, mountPath: /etc/quipu/tls, readOnly: true }
{{- end }}
{{- range .Values.secrets.mounted }}
- { name: {{ printf "secret-%s" .name }}, mountPath: {{ printf "/etc/quipu/secrets/%s" .name }}, readOnly: true }
{{- end }}
{{- range .Values.storage.extra }}
- { name: {{ printf "extra-%s" .name }}, mountPath: {{ .mountPath }}, readOnly: {{ .readOnly | default false }} }
{{- end }}
{{- end -}}

{{- define "quipu.volumes" -}}
- name: config
  configMap: { name: {{ include "quipu.name" . }}-config }
- name: catalog
  configMap: { name: {{ include "quipu.name" . }}-catalog }
- name: files
  configMap: { name: {{ include "quipu.name" . }}-files }
- name: tables
  persistentVolumeClaim: { claimName: {{ .Values.storage.tables.existingClaim | default (printf "%s-tables" (include "quipu.name" .)) }} }
# DuckDB's profiles go through memory.
- name: shm
  emptyDir: { medium: Memory, sizeLimit: 256Mi }
- name: tmp
  emptyDir: {}
{{- if .Values.tls.secretName }}
- name: tls
  secret: { secretName: {{ .Values.tls.secretName }}, defaultMode: 0440 }
{{- end }}
{{- range .Values.secrets.mounted }}
- name: {{ printf "secret-%s" .name }}
  secret: { secretName: {{ .name }}, defaultMode: 0440 }
{{- end }}
{{- range .Values.storage.extra }}
- name: {{ printf "extra-%s" .name }}
  persistentVolumeClaim: { claimName: {{ .claimName }} }
{{- end }}
{{- end -}}

{{/* What docker-compose.yml asks: /v1/info, by HTTPS where there is a certificate. */}}
{{- define "quipu.probes" -}}
{{- $command := `const scheme = process.env.QUIPU_TLS_CERT ? 'https' : 'http'
require(scheme).get(scheme + '://127.0.0.1:8080/v1/info', { rejectUnauthorized: false }, async (answer) => {
  let text = ''
  for await (const part of answer) text += part
  process.exit(JSON.parse(text).starting === false ? 0 : 1)
}).on('error', () => process.exit(1))
` -}}
readinessProbe:
  exec: { command: [node, -e, {{ $command | toJson }}] }
  periodSeconds: 10
  timeoutSeconds: 5
startupProbe:
  exec: { command: [node, -e, {{ $command | toJson }}] }
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 120
# A supervisor inside the container starts a silent process again. Kubernetes only looks whether the port is open.
livenessProbe:
  tcpSocket: { port: http }
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{- define "quipu.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "quipu.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Spreads the pods of a component over nodes. Takes (list $ "coordinator"). */}}
{{- define "quipu.scheduling" -}}
{{- $root := index . 0 -}}
{{- $values := get $root.Values (index . 1) -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "quipu.selector" . | nindent 8 }}
{{- with $values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
