package kubernetes

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Access says how an API server is reached. One of its fields is set.
type Access struct {
	InCluster  bool   // by what a Pod of this process has
	Kubeconfig []byte // by its current context; what would start a program, or read a file, is refused
	Server     *Server
	Cloud      *CloudServer
}

// Server is an API server by its address. The caller authenticates by a token, or by a
// certificate and its key.
type Server struct {
	URL                 string // https
	CA                  []byte // PEM; empty: the system's
	ProxyURL            string
	Token               string
	Certificate, Secret []byte // PEM: of the client, and its key
}

const (
	// callTime bounds each call, and each part of a watch.
	callTime = 30 * time.Second
	// Five calls in a second, which is the library's own limit, would take 40 s for 200 Jobs.
	callsPerSecond, callsAtOnce = 500, 1000
)

// config is how the client reaches the API server.
func (a Access) config() (*rest.Config, error) {
	config, err := a.base()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = callsPerSecond, callsAtOnce
	config.UserAgent = "holdfast"
	return config, nil
}

func (a Access) base() (*rest.Config, error) {
	switch {
	case a.InCluster:
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("find the API server of this Pod: %w", err)
		}
		return config, nil
	case len(a.Kubeconfig) > 0:
		return fromKubeconfig(a.Kubeconfig)
	case a.Server != nil:
		return a.Server.config()
	case a.Cloud != nil:
		return a.Cloud.config()
	default:
		return nil, errors.New("no way to reach the API server is given")
	}
}

func (s Server) config() (*rest.Config, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("address of the API server: want https://host[:port]")
	}
	config := &rest.Config{Host: s.URL, BearerToken: s.Token}
	config.CAData, config.CertData, config.KeyData = s.CA, s.Certificate, s.Secret
	return config, withProxy(config, s.ProxyURL)
}

func withProxy(config *rest.Config, address string) error {
	if address == "" {
		return nil
	}
	proxy, err := url.Parse(address)
	if err != nil || proxy.Host == "" {
		return errors.New("proxy of the API server: want http://host:port")
	}
	config.Proxy = proxyOf(proxy)
	return nil
}

// fromKubeconfig reads a kubeconfig that somebody wrote: nothing in it may have this
// process start a program or read a file.
func fromKubeconfig(text []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	for name, user := range config.AuthInfos {
		switch {
		case user.Exec != nil:
			return nil, fmt.Errorf("kubeconfig: user %q has an exec plugin, which is not supported: use a token or a client certificate", name)
		case user.AuthProvider != nil:
			return nil, fmt.Errorf("kubeconfig: user %q has an auth provider, which is not supported: use a token or a client certificate", name)
		case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
			return nil, fmt.Errorf("kubeconfig: user %q refers to files: put their contents into it (token, client-certificate-data, client-key-data)", name)
		}
	}
	for name, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf("kubeconfig: cluster %q refers to a file: use certificate-authority-data", name)
		}
	}
	found, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return found, nil
}
