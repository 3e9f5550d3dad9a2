// Package address reads addresses of buckets, such as s3://BUCKET/FOLDER?region=R. It
// reaches none, and is pure: the configuration checks an address with it before the room
// objects opens the bucket.
package address
