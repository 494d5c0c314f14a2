"""Moment estimators: closed forms for data from uniform exploration."""
