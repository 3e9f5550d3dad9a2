package buckets_test

import data.buckets

test_public if {
	found := buckets.deny with input as data.fixtures.public
	count(found) == 1
}

test_private if {
	count(buckets.deny) == 0 with input as data.fixtures.private
}
