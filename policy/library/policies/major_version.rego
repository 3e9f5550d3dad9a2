# Engines and providers move to another major version in a change of their own.
package holdfast.major_version

import rego.v1

# METADATA
# title: The engine does not move to another major version
# description: >-
#   Another major version of the engine, or another engine, may write states that the current one cannot read.
# custom:
#   id: engine-major-version
deny_engine contains msg if {
	engine := input.holdfast.engine
	engine.previous_version != ""
	major(engine.version) != major(engine.previous_version)
	msg := sprintf("the engine moves from %s to %s", [engine.previous_version, engine.version])
}

# METADATA
# title: Providers do not move to another major version
# description: >-
#   Another major version of a provider may remove arguments, or replace resources although their code is unchanged.
# custom:
#   id: provider-major-version
deny_provider contains msg if {
	some provider in input.holdfast.providers
	provider.previous_version != ""
	major(provider.version) != major(provider.previous_version)
	msg := sprintf("the provider %s moves from %s to %s", [provider.name, provider.previous_version, provider.version])
}

major(version) := regex.find_n(`[0-9]+`, version, 1)[0]
