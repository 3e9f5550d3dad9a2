// Package objects keeps what is too large for a row of the database: sealed bytes under
// keys, in a folder or in a bucket of S3, Google Cloud Storage or Azure Blob Storage.
//
// It owns how a bucket is reached (addresses, credentials, deadlines, retries), whose it
// is ([Bucket.Claim]), and what its errors say: what was done to which object, why it
// failed, and what to do. An object is written whole or not at all, under a key that is
// never used twice: there is nothing to update. A store that does not answer is a
// holdfast.ErrUnavailable, whatever the reason; an object that is certainly not there is a
// holdfast.ErrNotFound.
//
// The datastore calls it. It knows no record and no key of encryption: what it is given is
// ciphertext, and what it gives back may be damaged.
package objects
