"""The recorder inside other people's training loops; each module needs its own framework (extra ``integrations``)."""
