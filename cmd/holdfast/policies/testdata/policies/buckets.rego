# METADATA
# title: Buckets are private
# custom:
#   id: private-buckets
package buckets

deny contains {"msg": msg, "address": rc.address} if {
	some rc in input.holdfast.by_type.aws_s3_bucket
	rc.change.after.acl == "public-read"
	msg := sprintf("%s becomes public", [rc.address])
}

warn contains "it has a password" if {
	input.resource_changes[_].change.after.password != ""
}

info contains sprintf("it is a plan of %s", [input.holdfast.cluster.name]) if {
	input.holdfast.cluster.name != ""
}
