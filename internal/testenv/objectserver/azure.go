package objectserver

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// makeContainer makes a container of Azure Blob Storage.
func makeContainer(address, account, key, name string) error {
	credential, err := azblob.NewSharedKeyCredential(account, key)
	if err != nil {
		return err
	}
	client, err := service.NewClientWithSharedKeyCredential(address, credential, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = client.CreateContainer(ctx, name, nil)
	return err
}
