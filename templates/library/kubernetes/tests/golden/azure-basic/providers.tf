terraform {
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 4.55"
    }
    helm = {
      source  = "hashicorp/helm"
      version = "~> 3.1"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.38"
    }
  }
}

provider "azurerm" {
  features {
  }
}

provider "helm" {
  kubernetes = {
    "cluster_ca_certificate" = module.kubernetes.ca_certificate
    "host"                   = module.kubernetes.endpoint
    "token"                  = module.kubernetes.token
  }
}

provider "kubernetes" {
  cluster_ca_certificate = module.kubernetes.ca_certificate
  host                   = module.kubernetes.endpoint
  token                  = module.kubernetes.token
}
