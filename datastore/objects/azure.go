package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/holdfast-dev/holdfast/datastore/objects/address"
)

// azureBlock is how much of an object one request has. Nothing is to be seen of a blob
// before its last block was committed, and Azure forgets blocks that never were.
const azureBlock = 4 << 20

var azureHints = map[kind]string{
	kindCredentials: "check datastore.blobs.secret, the key of the storage account, or without it what the server's environment has: AZURE_STORAGE_KEY, a workload or managed identity, or AZURE_CLIENT_ID with its secret",
	kindDenied:      "check datastore.blobs.secret, if it is used, and the firewall of the storage account; give an identity the role Storage Blob Data Contributor on this container",
	kindNoBucket:    "create the container, or correct its name in datastore.blobs.url: the server creates none",
}

func openAzure(ctx context.Context, opts Options, at address.Address, within limits) (*blob.Bucket, cloud, error) {
	client, err := newClient(within, opts.CAFile)
	if err != nil {
		return nil, cloud{}, err
	}
	account := at.Account()
	service := at.Endpoint()
	if service == "" {
		service = "https://" + account + ".blob.core.windows.net"
	} else if account == "" {
		account = accountOf(service)
	}
	where, err := url.JoinPath(service, at.Bucket)
	if err != nil {
		return nil, cloud{}, err
	}
	common := azcore.ClientOptions{
		Transport: client,
		Retry:     policy.RetryOptions{MaxRetries: -1},
	}
	options := &container.ClientOptions{ClientOptions: common}
	secret := opts.Secret
	if key := os.Getenv("AZURE_STORAGE_KEY"); secret == nil && key != "" {
		secret = func() (string, error) { return key, nil }
	}
	var containers *container.Client
	if secret != nil {
		shared, err := newAccountKey(account, secret, within.secret)
		if err != nil {
			return nil, cloud{}, err
		}
		options.PerCallPolicies = []policy.Policy{shared} // before the request is signed
		containers, err = container.NewClientWithSharedKeyCredential(where, shared.credential, options)
		if err != nil {
			return nil, cloud{}, err
		}
	} else {
		identity, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: azcore.ClientOptions{Transport: client}})
		if err != nil {
			return nil, cloud{}, &credentialsError{err}
		}
		if containers, err = container.NewClient(where, identity, options); err != nil {
			return nil, cloud{}, err
		}
	}
	bucket, err := azureblob.OpenBucket(ctx, containers, nil)
	return bucket, cloud{explain: explainAzure, options: putAzure, hints: azureHints}, err
}

// accountOf is the name of the storage account in the address of its service: the first
// label of the host, or the last part of the path where the host is an address.
func accountOf(service string) string {
	u, err := url.Parse(service)
	if err != nil {
		return ""
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		return path
	}
	label, _, _ := strings.Cut(u.Host, ".")
	return label
}

// accountKey is the key of a storage account, read again now and then.
type accountKey struct {
	credential *azblob.SharedKeyCredential
	secret     func() (string, error)
	age        time.Duration // after which it is read again

	mu   sync.Mutex
	read time.Time // guarded
}

func newAccountKey(account string, secret func() (string, error), age time.Duration) (*accountKey, error) {
	key, err := secret()
	if err != nil {
		return nil, &credentialsError{err}
	}
	credential, err := azblob.NewSharedKeyCredential(account, strings.TrimSpace(key))
	if err != nil {
		return nil, &credentialsError{errors.New("the key of the storage account is not base64")} // theirs may quote it
	}
	return &accountKey{credential: credential, secret: secret, age: age, read: time.Now()}, nil
}

// Do is a policy of azcore.
func (k *accountKey) Do(req *policy.Request) (*http.Response, error) {
	k.mu.Lock()
	if time.Since(k.read) > k.age {
		key, err := k.secret()
		if err == nil && k.credential.SetAccountKey(strings.TrimSpace(key)) != nil {
			err = errors.New("the key of the storage account is not base64")
		}
		if err != nil {
			k.mu.Unlock()
			return nil, &credentialsError{err}
		}
		k.read = time.Now()
	}
	k.mu.Unlock()
	return req.Next()
}

func putAzure(int64, []byte) *blob.WriterOptions {
	return &blob.WriterOptions{BufferSize: azureBlock, MaxConcurrency: 1}
}

// azureMessage is what a person can read of an answer of Azure.
var azureMessage = regexp.MustCompile(`<Message>([^\n<]*)`)

func explainAzure(err error) (answer, bool) {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		said := answer{status: response.StatusCode, code: response.ErrorCode}
		if found := azureMessage.FindStringSubmatch(response.Error()); found != nil {
			said.message = found[1]
		}
		return said, true
	}
	var failed *azidentity.AuthenticationFailedError
	if errors.As(err, &failed) {
		return answer{status: http.StatusUnauthorized, message: fmt.Sprintf("no token: %T", failed)}, true
	}
	return answer{}, false
}
