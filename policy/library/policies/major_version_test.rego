package holdfast.major_version_test

import data.holdfast.major_version

versions(engine, provider) := {"holdfast": {"engine": engine, "providers": [provider]}}

aws(from, to) := {"name": "registry.opentofu.org/hashicorp/aws", "version": to, "previous_version": from}

tofu(from, to) := {"name": "tofu", "version": to, "previous_version": from}

test_moved if {
	count(major_version.deny_engine) == 1 with input as versions(tofu("1.10.1", "2.0.0"), aws("6.1.0", "6.2.0"))
	count(major_version.deny_provider) == 1 with input as versions(tofu("1.10.1", "1.11.0"), aws("5.100.0", "6.0.0"))
}

test_same_major if {
	count(major_version.deny_engine) == 0 with input as versions(tofu("1.10.1", "1.11.0"), aws("6.1.0", "6.2.0"))
	count(major_version.deny_provider) == 0 with input as versions(tofu("1.10.1", "1.11.0"), aws("6.1.0", "6.2.0"))
}

test_first_apply if {
	count(major_version.deny_engine) == 0 with input as versions(tofu("", "1.11.0"), aws("", "6.2.0"))
	count(major_version.deny_provider) == 0 with input as versions(tofu("", "1.11.0"), aws("", "6.2.0"))
}
