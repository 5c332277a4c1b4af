module localcluster/pause

go 1.26
